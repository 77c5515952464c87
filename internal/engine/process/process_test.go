//go:build linux

package process_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/proctree"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/enginetest"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/process"
)

func TestMain(m *testing.M) {
	if order := os.Getenv(orderVariable); order != "" {
		obey(order)
	}
	acctest.Main(m, fakenvml.Remove)
}

// opened is an engine with its cluster, its state directory, the provider program of its residents, and the driver of
// this machine's GPUs.
type opened struct {
	*process.Engine
	dir, cluster, provider string
	nvml                   *fakenvml.Control
}

// skipIfShort skips a test that runs the engine under -short, as in make test-unit.
func skipIfShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("this runs the process engine, which takes time: run make test-process")
	}
}

func open(t *testing.T) opened {
	t.Helper()
	return openIn(t, t.TempDir())
}

func openIn(t *testing.T, dir string) opened {
	t.Helper()
	skipIfShort(t)
	return opened{dir: dir, cluster: "lab", provider: acctest.Build(t, acctest.Provider)}.open(t)
}

// open opens the engine, whose cluster ends with the test.
func (o opened) open(t *testing.T) opened {
	t.Helper()
	o = o.again(t)
	t.Cleanup(func() { acctest.EndCluster(t, o) })
	return o
}

// again opens the engine a second time.
func (o opened) again(t *testing.T) opened {
	t.Helper()
	e, err := process.Open(domain.ClusterRef{Name: o.cluster}, engine.Settings{StateDir: o.dir},
		process.Program{File: o.provider, Version: "dev"})
	if err != nil {
		t.Fatal(err)
	}
	o.Engine = e
	return o
}

// files returns the cluster's state directory.
func (o opened) files() statedir.Dir { return statedir.Dir{Root: o.dir, Cluster: o.cluster} }

// work returns the folder in which a member runs.
func (o opened) work(member string) string { return o.files().WorkDir(member) }

func TestStateDirectory(t *testing.T) {
	t.Setenv("TRAINYARD_STATE_DIR", "/srv/environment")
	here, err := os.Getwd()
	must(t, err)
	for _, c := range []struct{ endpoint, setting, want, refused string }{
		{"", "/srv/configured", "/srv/configured", ""},
		{"", "", "/srv/environment", ""},
		{"", "state", "", `"state" is a relative path`},
		{"/srv/named", "/srv/configured", "/srv/named", ""},
		{"state", "/srv/configured", filepath.Join(here, "state"), ""},
	} {
		e, err := process.Open(domain.ClusterRef{Name: "lab", Endpoint: c.endpoint},
			engine.Settings{StateDir: c.setting}, process.Program{})
		if c.refused != "" {
			if err == nil || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("state directory %q: %v", c.setting, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("state directory %q: %v", c.setting, err)
		} else if dir := e.Traits().FilesDir("m"); !strings.HasPrefix(dir, c.want+"/lab/") {
			t.Errorf("state directory %q: files are in %s", c.setting, dir)
		}
	}
}

func TestConformance(t *testing.T) {
	skipIfShort(t)
	t.Parallel()
	enginetest.Run(t, harness(t))
}

// known returns an engine as open returned it.
func known(t *testing.T, s engine.Store) opened {
	t.Helper()
	o, ok := s.(opened)
	if !ok {
		t.Fatalf("%T is not of these tests", s)
	}
	return o
}

func harness(t *testing.T) enginetest.Harness {
	t.Helper()
	program := acctest.Build(t, acctest.Member)
	return enginetest.Harness{
		Open: func(t *testing.T, cluster string) engine.Engine {
			t.Helper()
			return opened{dir: t.TempDir(), cluster: cluster, provider: acctest.Build(t, acctest.Provider)}.open(t)
		},
		Store:   storeHarness(),
		Cluster: func(name string) domain.Cluster { return domain.Cluster{Name: name, Engine: process.Name} },
		Host:    "local",

		EveryDeath: true,
		Template: func(steps ...string) domain.Template {
			return domain.Template{Command: append([]string{program}, steps...)}
		},
		Scratch: func(t *testing.T) string { return filepath.Join(t.TempDir(), "once") },
		Foreign: func(t *testing.T, e engine.Engine, group string) func() error {
			member := domain.MemberName(group, "worker", 0)
			note := filepath.Join(known(t, e).work(member), "result.txt")
			if err := os.MkdirAll(filepath.Dir(note), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(note, []byte("result"), 0o600); err != nil {
				t.Fatal(err)
			}
			stranger := exec.CommandContext(t.Context(), program, "wait")
			stranger.Env = []string{"TRAINYARD_MEMBER=" + member}
			if err := stranger.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = stranger.Wait() })
			return func() error {
				if _, err := os.Stat(note); err != nil {
					return err
				}
				if _, err := proctree.Lookup(stranger.Process.Pid); err != nil {
					return fmt.Errorf("a process that is no member's: %w", err)
				}
				return nil
			}
		},
		Alive: func(t *testing.T, e engine.Engine, group string) int {
			t.Helper()
			return acctest.Alive(t, known(t, e).work(group+"-"), program) // the prefix of members' names
		},
		GPUs: enginetest.GPUs{
			Open: func(t *testing.T, cluster string) engine.Engine {
				t.Helper()
				control := fakenvml.New(t)
				return opened{
					dir: t.TempDir(), cluster: cluster,
					provider: acctest.ProviderWithGPUs(t, control, enginetest.Lacking), nvml: control,
				}.open(t)
			},
			Driver:  func(t *testing.T, e engine.Engine) enginetest.Driver { t.Helper(); return known(t, e).nvml },
			Another: func(t *testing.T, e engine.Engine) engine.Engine { t.Helper(); return known(t, e).again(t) },
			Process: func(t *testing.T, e engine.Engine, member string) int {
				t.Helper()
				o := known(t, e)
				state, err := statedir.Read[statedir.State](o.files().Document(statedir.States, member))
				if err != nil {
					t.Fatal(err)
				}
				return state.PID
			},
			Stranger: os.Getpid(),
		},
	}
}
