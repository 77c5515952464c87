//go:build linux

package top_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/terminal"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/process"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

func TestMain(m *testing.M) { acctest.Main(m, fakenvml.Remove) }

// newLab returns the state directory of a cluster "lab", whose residents run from a program.
func newLab(t *testing.T, program string) (stateDir string, e engine.Engine) {
	t.Helper()
	stateDir = t.TempDir()
	e, err := process.Open(domain.ClusterRef{Name: "lab"}, engine.Settings{StateDir: stateDir},
		process.Program{File: program, Version: "dev"})
	must(t, err)
	t.Cleanup(func() { acctest.EndCluster(t, e) })
	spec, _, err := e.Complete(t.Context(), domain.Cluster{Name: "lab", Engine: process.Name})
	must(t, err)
	_, err = engine.Put(t.Context(), e, domain.ClusterDocument{Spec: spec})
	must(t, err)
	must(t, e.StartController(t.Context()))
	return stateDir, e
}

// newCluster returns the state directory of such a cluster with a group "job": a chief that runs until the file exists,
// and eight workers that wait.
func newCluster(t *testing.T, program string) (stateDir, file string) {
	t.Helper()
	stateDir, e := newLab(t, program)
	file = filepath.Join(t.TempDir(), "enough")
	member, delay := acctest.Build(t, acctest.Member), domain.Duration(time.Millisecond)
	role := func(replicas int, steps ...string) domain.Role {
		return domain.Role{
			Replicas: &replicas, Restart: domain.Restart{Delay: &delay},
			Template: domain.Template{Command: append([]string{member}, steps...)},
		}
	}
	must(t, reconcile.Reconciler{Engine: e}.Update(t.Context(), domain.Group{
		Cluster: "lab", Name: "job", Framework: "none", RestartScope: domain.ScopeMember, WaitFor: domain.WaitRunning,
		Roles: map[string]domain.Role{
			"chief": role(1, "print:step 1", "until:"+file, "print:step 2"), "worker": role(8, "print:ready", "wait"),
		},
	}))
	return stateDir, file
}

// startIn runs top in a terminal of this size.
func startIn(t *testing.T, width, height int, args ...string) *terminal.Terminal {
	t.Helper()
	command := exec.Command(acctest.Build(t, acctest.Provider), append([]string{"top"}, args...)...)
	command.Env = append(os.Environ(), "DOCKER_HOST=")
	return terminal.Start(t, width, height, command)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestTerminal(t *testing.T) {
	nvml := fakenvml.New(t)
	card := fakenvml.Device{
		UUID: "GPU-a40a40a4-0000-4000-8000-000000000000", Name: "NVIDIA A40", PCIBusID: "00000000:3B:00.0",
		MemoryMiB: 46_068, UsedMiB: 23_034,
		Utilisation: 87, TemperatureC: 63, PowerMW: 212_000,
	}
	nvml.Set(card)
	stateDir, file := newCluster(t, acctest.ProviderWithGPUs(t, nvml))
	term := startIn(t, 100, 30, "--endpoint", stateDir, "--interval", "1s")
	term.Sees("lab", "process", "1 host", "1 GPU", "1 group")
	term.Sees("local:0", "87 %", "█████████░", "22.5/45.0 GiB", "█████░░░░░", "63 °C", "212 W")
	term.Sees("local", "/", "█", "GiB", "█")
	term.Sees("job", "9 running")
	term.Sees("job-chief-0", "running", "MiB", "local")
	term.Sees("job-worker-7", "running")

	card.Utilisation = 12
	nvml.Set(card)
	term.Sees("local:0", "12 %", "█░░░░░░░░░")

	must(t, os.WriteFile(file, nil, 0o600))
	term.Sees("job", "8 running", "1 completed")
	term.Sees("job-chief-0", "completed", "–")

	term.Resize(60, 9)
	term.Sees("lab", "process", "1 host")
	term.Sees("q quit", "1–6 of ")
	term.Press("\x1b[F") // End
	term.Sees("job-worker-7", "running")
	term.Press("g\x1b[Hm") // a key without a meaning, Home, and another order
	term.Sees("HOST", "CPUS", "MEMORY")
	term.Resize(100, 30)
	term.Sees("job-worker-7", "running", "local")

	term.Press("/CHIEFX\x7f")
	term.Sees("/CHIEF█", "Enter keeps this filter")
	term.Sees("job-chief-0", "completed")
	acctest.Eventually(t, "the others to be hidden",
		func() bool { return !strings.Contains(term.Screen(), "job-worker-7") })
	term.Press("\r")
	term.Sees("q quit", "/ filter CHIEF")
	term.Press("\x1b")
	term.Sees("job-worker-7", "running", "local")

	term.Press("2")
	term.Sees("No sweeps.")
	term.Press("\t")
	term.Sees("logs of job-chief-0")
	term.Sees("step 1")
	term.Sees("step 2")
	term.Press("\x1b[C") // to the right
	term.Sees("logs of job-worker-0")
	term.Sees("ready")
	term.Press("1")
	term.Sees("job-worker-7", "running", "local")

	term.Press("q")
	term.Ends()
}

// TestEnds checks that the terminal is restored, however the program ends.
func TestEnds(t *testing.T) {
	for name, end := range map[string]func(*terminal.Terminal){
		"Ctrl-C": func(t *terminal.Terminal) { t.Press("\x03") },
		"killed": func(t *terminal.Terminal) { t.Signal(syscall.SIGTERM) },
	} {
		t.Run(name, func(t *testing.T) {
			// The program waits for a Docker Engine that can't be reached.
			term := startIn(t, 80, 24, "--engine", "swarm", "--endpoint",
				"unix://"+filepath.Join(t.TempDir(), "docker.sock"), "--cluster", "lab", "--interval", "1s")
			term.Sees("lab", "swarm")
			term.Sees("the Docker Engine at unix://")
			term.Sees("there is no socket")
			term.Sees("Trying again.")
			end(term)
			term.Ends()
		})
	}
}

// TestSwarm checks that a cluster on a Swarm is found through its manager, and that the last reading stays on the
// screen if that is lost.
func TestSwarm(t *testing.T) {
	bed := testbed.New(t, testbed.Options{Nodes: 1, Managers: 1})
	proxy := testbed.NewProxy(t, bed.Nodes[0])
	_, complaint, err := once(t, "--engine", "swarm", "--endpoint", proxy.Host())
	if err == nil || !strings.Contains(complaint, "cluster not found on the Swarm; use --engine and --endpoint") {
		t.Errorf("without a cluster: %v: %s", err, complaint)
	}
	store := func(name string) {
		e, err := swarm.Open(domain.ClusterRef{Engine: swarm.Name, Name: name, Endpoint: proxy.Host()},
			engine.Settings{}, swarm.Program{})
		must(t, err)
		_, err = engine.Put(t.Context(), e, domain.ClusterDocument{
			Spec: domain.Cluster{Name: name, Engine: swarm.Name, Hosts: map[string]domain.Host{"node1": {}}},
		})
		must(t, err)
	}
	store("lab")
	term := startIn(t, 100, 30, "--engine", "swarm", "--endpoint", proxy.Host(), "--interval", "1s")
	term.Sees("lab", "swarm", "1 host")
	term.Sees("node1", "–", "–")
	term.Sees("host node1: no agent of the cluster is running")
	proxy.On(testbed.Fault{Nth: 1, Onwards: true, Do: testbed.Drop()})
	term.Sees("Trying again. Showing data from")
	term.Sees("node1", "–", "–")
	proxy.Reset()
	acctest.Eventually(t, "the error to go", func() bool { return !strings.Contains(term.Screen(), "Trying again") })
	term.Press("q")
	term.Ends()

	store("attic")
	_, complaint, err = once(t, "--engine", "swarm", "--endpoint", proxy.Host())
	if err == nil ||
		!strings.Contains(complaint, `there are several clusters: choose one of ["attic" "lab"] with --cluster`) {
		t.Errorf("with two clusters: %v: %s", err, complaint)
	}
}

// once runs top without a terminal as its output.
func once(t *testing.T, args ...string) (out, complaint string, err error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), acctest.Build(t, acctest.Provider), append([]string{"top"}, args...)...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	command.Env = append(os.Environ(), "DOCKER_HOST=", "HOME="+t.TempDir())
	err = command.Run()
	return stdout.String(), stderr.String(), err
}

func TestOnce(t *testing.T) {
	stateDir, _ := newCluster(t, acctest.Build(t, acctest.Provider))
	out, complaint, err := once(t, "--endpoint", stateDir)
	if err != nil || complaint != "" {
		t.Fatalf("%v: %s", err, complaint)
	}
	for _, want := range []string{"lab  process  1 host", "HOST ", "local ", "job ", "9 running", "  job-chief-0 "} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if strings.Contains(out, "\x1b") {
		t.Errorf("commands for a terminal are in %q", out)
	}
	_, complaint, err = once(t, "--endpoint", stateDir, "--cluster", "other")
	if err == nil || !strings.Contains(complaint, `no cluster "other": choose one of ["lab"] with --cluster`) {
		t.Errorf("another cluster: %v: %s", err, complaint)
	}
}

func TestNotFound(t *testing.T) {
	stateDir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		e, err := process.Open(domain.ClusterRef{Name: name}, engine.Settings{StateDir: stateDir}, process.Program{})
		must(t, err)
		_, err = engine.Put(t.Context(), e,
			domain.ClusterDocument{Spec: domain.Cluster{Name: name, Engine: process.Name}})
		must(t, err)
	}
	must(t, os.WriteFile(filepath.Join(stateDir, "note"), nil, 0o600))
	here, err := os.Getwd()
	must(t, err)
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no such directory": {
			[]string{"--endpoint", "/nowhere"},
			"cluster not found in the state directory /nowhere; use --engine and --endpoint to say which engine runs the cluster, and where",
		},
		"a relative directory": {
			[]string{"--endpoint", "state"}, "cluster not found in the state directory " + here + "/state;",
		},
		"no such engine": {
			[]string{"--engine", "docker"},
			`--engine: unknown engine "docker"; use one of ["process" "swarm" "systemd"]`,
		},
		"no directory at all": {nil, ".local/state/trainyard; use --engine and --endpoint"},
		"no such cluster there": {
			[]string{"--endpoint", "/nowhere", "--cluster", "lab"}, "cluster not found in the state directory /nowhere",
		},
		"several": {
			[]string{"--endpoint", stateDir}, `there are several clusters: choose one of ["a" "b"] with --cluster`,
		},
		"not the one": {
			[]string{"--endpoint", stateDir, "--cluster", "c"},
			`no cluster "c": choose one of ["a" "b"] with --cluster`,
		},
		"not a name": {[]string{"--endpoint", stateDir, "--cluster", "../a"}, "name"},
		"no Engine": {
			[]string{"--engine", "swarm", "--endpoint", "unix:///nowhere.sock"}, "can't be reached",
		},
		"no Engine, but a name": {
			[]string{"--engine", "swarm", "--endpoint", "unix:///nowhere.sock", "--cluster", "lab"}, "can't be reached",
		},
		"not an address": {[]string{"--engine", "swarm", "--endpoint", "http://gpu1"}, "engine address"},
	} {
		t.Run(name, func(t *testing.T) {
			out, complaint, err := once(t, c.args...)
			if err == nil || out != "" || !strings.Contains(complaint, c.want) {
				t.Errorf("%v: %q does not say %q; and it printed %q", err, complaint, c.want, out)
			}
		})
	}
}
