//go:build linux

package process_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/proctree"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/enginetest"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/process"
)

func TestKilledMemberIsRestarted(t *testing.T) {
	for name, victim := range map[string]func(l lab) int{
		"the command": func(l lab) int { return l.command("job-ps-0") },
		"its shell":   func(l lab) int { return l.state("job-ps-0").PID },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.must(l.Update(t.Context(), l.job("wait")))
			l.command("job-ps-0")
			l.kill(victim(l))
			l.eventually("the restart", func() bool {
				o := l.member("job-ps-0")
				return o.State == domain.StateRunning && o.Restarts == 1
			})
			l.command("job-ps-0")
			if n := l.alive(2); n != 2 {
				t.Errorf("%d processes run for 2 members", n)
			}
			if o := l.member("job-chief-0"); o.Restarts != 0 {
				t.Errorf("the other member was restarted: %+v", o)
			}
		})
	}
}

func TestKilledSupervisorIsReplaced(t *testing.T) {
	l := newLab(t)
	l.must(l.Update(t.Context(), l.job("wait")))
	pid := l.command("job-ps-0")
	before := l.supervisor(0)
	l.kill(before)
	l.supervisor(before) // the controller restarts it
	if again := l.command("job-ps-0"); again != pid {
		t.Errorf("the member's process was %d and is %d", pid, again)
	}
	// The new supervisor notices the end of processes that it didn't start.
	l.must(unix.Kill(l.command("job-chief-0"), unix.SIGTERM))
	l.awaitState("job-chief-0", domain.StateCompleted)
	l.awaitState("job-ps-0", domain.StateStopped)
}

// TestSupervisorDiesInAStart: a member whose supervisor died before it recorded the start keeps running, and is not
// started a second time.
func TestSupervisorDiesInAStart(t *testing.T) {
	l := newLab(t)
	l.must(l.Update(t.Context(), l.job("wait")))
	pid, supervisor := l.command("job-ps-0"), l.supervisor(0)
	l.halt(supervisor)
	l.kill(l.controller(0))
	begun := l.state("job-ps-0")
	begun.State, begun.PID, begun.StartTime = domain.StatePending, 0, 0
	l.must(statedir.Write(l.files.Document(statedir.States, "job-ps-0"), begun, statedir.Volatile))
	l.kill(supervisor)

	l.awaitState("job-ps-0", domain.StateRunning)
	if again := l.command("job-ps-0"); again != pid {
		t.Errorf("the member's process was %d and is %d", pid, again)
	}
}

func TestNothingIsLostWithoutAnybody(t *testing.T) {
	l := newLab(t)
	l.must(l.Update(t.Context(), l.job("wait")))
	chief, ps := l.command("job-chief-0"), l.command("job-ps-0")
	supervisor, controller := l.supervisor(0), l.controller(0)
	l.halt(supervisor) // neither may restart the other
	l.kill(controller)
	l.kill(supervisor)
	l.must(unix.Kill(chief, unix.SIGTERM))
	exit := l.files.Exit("job-chief-0", l.state("job-chief-0").Instance)
	l.eventually("the exit code", func() bool {
		code, err := os.ReadFile(exit)
		return err == nil && len(code) > 0
	})

	o := l.awaitState("job-chief-0", domain.StateCompleted) // observing the members restarts the supervisor
	if o.ExitCode == nil || *o.ExitCode != 0 || o.Restarts != 0 {
		t.Errorf("a member that completed unattended is %+v", o)
	}
	l.controller(controller)
	l.awaitState("job-ps-0", domain.StateStopped)
	if _, err := proctree.Lookup(ps); !errors.Is(err, proctree.ErrGone) {
		t.Errorf("the parameter server's process is still there (%v)", err)
	}
}

func TestMembersComeBackAfterReboot(t *testing.T) {
	l := newLab(t)
	l.must(l.Update(t.Context(), l.job("wait")))
	l.halt(l.supervisor(0))
	supervisor := l.supervisor(0)
	l.kill(l.controller(0))
	for _, member := range []string{"job-chief-0", "job-ps-0", "trainyard-controller"} {
		state := l.state(member)
		if pid := l.child(state); pid != 0 {
			l.kill(pid)
		}
		l.must(unix.Kill(state.PID, unix.SIGKILL))
		l.must(os.RemoveAll(l.files.Exit(member, state.Instance)))
		state.Boot = "the boot before"
		l.must(statedir.Write(l.files.Document(statedir.States, member), state, statedir.Volatile))
	}
	l.kill(supervisor)

	l.eventually("the members to run again", func() bool {
		o := l.member("job-ps-0")
		return o.State == domain.StateRunning && strings.Contains(o.LastError, "the machine was restarted")
	})
	if o := l.awaitState("job-chief-0", domain.StateRunning); o.Restarts != 0 {
		t.Errorf("the reboot counted as an attempt: %+v", o)
	}
}

// TestPowerLoss: of what was written in the last seconds before a power loss, empty files may be left.
func TestPowerLoss(t *testing.T) {
	l := newLab(t)
	l.must(l.Update(t.Context(), l.job("wait")))
	supervisor := l.supervisor(0)
	l.halt(supervisor)
	l.kill(l.controller(0))
	for _, member := range []string{"job-chief-0", "job-ps-0", "trainyard-controller"} {
		state := l.state(member)
		if pid := l.child(state); pid != 0 {
			l.kill(pid)
		}
		l.must(unix.Kill(state.PID, unix.SIGKILL))
		l.must(os.RemoveAll(l.files.Exit(member, state.Instance)))
		state.Boot = "the boot before"
		l.must(statedir.Write(l.files.Document(statedir.States, member), state, statedir.Volatile))
	}
	for name, folder := range map[string]string{
		"job-ps-0": statedir.Specs, "job-chief-0": statedir.States, "job-chief-1": statedir.Staged,
		"job.1": statedir.Starts,
	} {
		l.must(os.WriteFile(l.files.Document(folder, name), nil, 0o600))
	}
	l.kill(supervisor)

	l.awaitState("job-chief-0", domain.StateRunning)
	l.eventually("the other member to be forgotten", func() bool {
		_, err := os.Stat(l.files.Document(statedir.States, "job-ps-0"))
		return errors.Is(err, os.ErrNotExist)
	})
	l.must(l.Update(t.Context(), l.job("wait")))
	l.awaitState("job-ps-0", domain.StateRunning)
	if n := l.alive(2); n != 2 {
		t.Errorf("%d processes run for 2 members", n)
	}
	l.must(l.Destroy(t.Context(), "job"))
}

func TestKilledControllerIsReplaced(t *testing.T) {
	l := newLab(t)
	l.must(l.Update(t.Context(), l.job("wait")))
	before := l.controller(0)
	l.kill(before)
	l.controller(before)
	l.must(unix.Kill(l.command("job-chief-0"), unix.SIGTERM))
	l.awaitState("job-ps-0", domain.StateStopped)
}

func TestUpgradeReplacesResidents(t *testing.T) {
	l := newLab(t)
	l.must(l.Update(t.Context(), l.job("wait")))
	pid, supervisor, controller := l.command("job-ps-0"), l.supervisor(0), l.controller(0)

	program := acctest.BuildVersion(t, "9.9.9")
	next, err := process.Open(domain.ClusterRef{Name: "lab"}, engine.Settings{StateDir: l.dir},
		process.Program{File: program, Version: "9.9.9"})
	l.must(err)
	l.must(next.StartController(t.Context()))
	for what, resident := range map[string]int{
		"supervisor": l.supervisor(supervisor), "controller": l.controller(controller),
	} {
		if file, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(resident), "exe")); err != nil ||
			file != program {
			t.Errorf("the %s runs from %s, not from %s (%v)", what, file, program, err)
		}
	}
	if again := l.command("job-ps-0"); again != pid {
		t.Errorf("a member's process was %d and is %d", pid, again)
	}
	if o := l.member("job-ps-0"); o.State != domain.StateRunning || o.Restarts != 0 {
		t.Errorf("a member after the upgrade is %+v", o)
	}
}

func TestMemoryLimit(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("limits are enforced by control groups, which an ordinary user may not have been given")
	}
	l := newLab(t)
	job := l.job()
	chief := job.Roles["chief"]
	chief.Command = []string{"/bin/sh", "-c", "x=x; while :; do x=$x$x; done"}
	chief.Resources.MemoryMiB = 32
	chief.Restart = domain.Restart{Condition: domain.RestartNever}
	job.Roles["chief"] = chief
	job.WaitFor = domain.WaitCompleted
	err := l.Update(t.Context(), job)
	if err == nil || !strings.Contains(err.Error(), "out of memory: its limit is 32 MiB") {
		t.Errorf("a member over its limit: %v", err)
	}
	observed, err := l.Observe(t.Context(), "job")
	l.must(err)
	for _, o := range observed {
		if killed := o.OutOfMemory; (killed != nil) != (o.Role == "chief") ||
			killed != nil && (killed.LimitMiB != 32 || killed.At.Before(*o.StartedAt)) {
			t.Errorf("%s is said to have run out of memory: %+v", o.Name, killed)
		}
	}
}

func TestCorruptDocuments(t *testing.T) {
	for name, path := range map[string]func(l lab) string{
		"cluster": func(l lab) string { return l.files.Item(engine.Key{Kind: domain.ClusterKind}) },
		"group":   func(l lab) string { return l.files.Item(engine.Key{Kind: domain.GroupKind, Name: "job"}) },
		"state":   func(l lab) string { return l.files.Document(statedir.States, "job-ps-0") },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.must(l.Update(t.Context(), l.job("wait")))
			pid := l.command("job-ps-0")
			file := path(l)
			before, err := os.ReadFile(file)
			l.must(err)
			l.must(os.WriteFile(file, []byte(`{"version":`), 0o600))
			for what, err := range map[string]error{
				"Read":    func() error { _, err := l.Read(t.Context(), "job"); return err }(),
				"Update":  l.Update(t.Context(), l.job("print:changed", "wait")),
				"Destroy": l.destroyUnlessCluster(name),
			} {
				if _, corrupt := errors.AsType[*engine.CorruptError](err); !corrupt ||
					!strings.Contains(err.Error(), file) {
					t.Errorf("%s with a corrupt document: %v", what, err)
				}
			}
			if _, err := proctree.Lookup(pid); err != nil {
				t.Errorf("a member was lost over it: %v", err)
			}
			l.must(os.WriteFile(file, before, 0o600))
			l.must(l.Update(t.Context(), l.job("wait")))
		})
	}
}

// destroyUnlessCluster destroys the group. If the cluster's document is corrupt, it only reads that, since the group
// can be destroyed without it.
func (l lab) destroyUnlessCluster(corrupt string) error {
	if corrupt == "cluster" {
		_, err := engine.Cluster(l.Context(), l)
		return err
	}
	return l.Destroy(l.Context(), "job")
}

func TestCorruptStateStartsNobodyTwice(t *testing.T) {
	l := newLab(t)
	l.must(l.Update(t.Context(), l.job("wait")))
	pid := l.command("job-ps-0")
	file := l.files.Document(statedir.States, "job-ps-0")
	l.must(os.WriteFile(file, []byte("{"), 0o600))
	before := l.supervisor(0)
	l.kill(before)
	l.supervisor(before)
	alone := func() {
		t.Helper()
		if n := l.alive(2); n != 2 {
			t.Errorf("%d processes run for 2 members", n)
		}
	}
	alone()
	if _, err := proctree.Lookup(pid); err != nil {
		t.Errorf("the member of a corrupt state: %v", err)
	}

	// After moving the file away, as the error advises, the running process is found and replaced.
	l.must(os.Remove(file))
	l.eventually("the state to be written anew", func() bool {
		_, err := os.Stat(file)
		return err == nil && l.member("job-ps-0").State == domain.StateRunning
	})
	l.eventually("the member's process to be replaced", func() bool {
		_, err := proctree.Lookup(pid)
		return errors.Is(err, proctree.ErrGone)
	})
	l.eventually("the new process",
		func() bool { return acctest.Alive(t, l.dir, acctest.Build(t, acctest.Member)) == 2 })
	alone()
}

// TestSpecificationsOfOneMoment: a new specification takes effect though its file has the same modification time and
// size as the previous one's, as on a file system with coarse timestamps.
func TestSpecificationsOfOneMoment(t *testing.T) {
	l := newLab(t)
	l.must(l.Update(t.Context(), l.job("wait")))
	former := l.files.Document(statedir.Specs, "job-ps-0")
	spec, err := statedir.Read[domain.MemberSpec](former)
	l.must(err)
	spec.Run++
	next := l.files.Document(statedir.Staged, "job-ps-0")
	l.must(statedir.Write(next, spec, statedir.Volatile))
	written, err := os.Stat(former)
	l.must(err)
	l.must(os.Chtimes(next, time.Time{}, written.ModTime()))
	if staged, err := os.Stat(next); err != nil || staged.Size() != written.Size() {
		t.Fatalf("the next specification does not look as the former one: %+v (%v)", staged, err)
	}
	l.must(l.Start(t.Context(), "job", spec.Run))
	l.eventually("the member to run by the next specification", func() bool {
		o := l.member("job-ps-0")
		return o.Run == spec.Run && o.State == domain.StateRunning
	})
}

func TestGroupWithoutCluster(t *testing.T) {
	l := newLab(t)
	l.must(l.Update(t.Context(), l.job("wait")))
	file := l.files.Item(engine.Key{Kind: domain.ClusterKind})
	document, err := os.ReadFile(file)
	l.must(err)
	l.must(os.Remove(file))
	if _, err := l.Read(t.Context(), "job"); err == nil || errors.Is(err, engine.ErrNotFound) ||
		!strings.Contains(err.Error(), "-target") {
		t.Errorf("a group without the document of its cluster: %v", err)
	}
	l.must(os.WriteFile(file, document, 0o600))
}

func TestWaitBringsResidentsBack(t *testing.T) {
	l := newLab(t)
	job := l.job("wait")
	job.WaitFor = domain.WaitCompleted
	ended := make(chan error, 1)
	go func() { ended <- l.Update(t.Context(), job) }()
	l.eventually("the members", func() bool {
		_, err := statedir.Read[statedir.State](l.files.Document(statedir.States, "job-chief-0"))
		return err == nil
	})
	chief := l.command("job-chief-0")
	l.command("job-ps-0")
	l.awaitApplied()
	supervisor, controller := l.supervisor(0), l.controller(0)
	l.halt(supervisor)
	l.kill(controller)
	l.kill(supervisor)
	l.must(unix.Kill(chief, unix.SIGTERM))
	if err := <-ended; err != nil {
		t.Errorf("a wait without anybody to see to the cluster: %v", err)
	}
}

// awaitApplied waits until the apply has made its changes and only waits.
func (l lab) awaitApplied() {
	l.Helper()
	l.eventually("the apply to wait for the completion", func() bool {
		doc, err := engine.Get[domain.GroupDocument](l.Context(), l, "job")
		l.must(err)
		return !doc.Applying
	})
}

func TestLogsAreKeptBesideCrashes(t *testing.T) {
	l := newLab(t)
	job := l.job("wait")
	job.RestartScope = domain.ScopeMember
	ps, unlimited, often := job.Roles["ps"], 0, domain.Duration(200*time.Millisecond)
	ps.Command = append(ps.Command[:2:2], "exit:0")
	ps.Restart = domain.Restart{Condition: domain.RestartAlways, MaxAttempts: &unlimited, Delay: &often}
	job.Roles["ps"] = ps
	l.must(l.Update(t.Context(), job))
	l.eventually("the size of the other member's log to be noted", func() bool {
		_, err := os.Stat(l.files.Log("job-chief-0") + ".times")
		return err == nil
	})
}

// TestOrdinaryUser runs the conformance suite again as an unprivileged user.
func TestOrdinaryUser(t *testing.T) {
	skipIfShort(t)
	if os.Getuid() != 0 {
		t.Skip("the other tests run as an ordinary user already")
	}
	t.Parallel()
	const nobody = 65534
	home, err := os.MkdirTemp("", "trainyard-nobody-") //nolint:usetesting // the parent of t.TempDir is closed to other users
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	suite, member := os.Args[0], acctest.Build(t, acctest.Member)
	for _, program := range []string{suite, member, acctest.Build(t, acctest.Provider), acctest.BuildAgent(t)} {
		if err := exec.Command("cp", program, home).Run(); err != nil {
			t.Fatal(err)
		}
	}
	if err := exec.Command("chown", "-R", strconv.Itoa(nobody)+":"+strconv.Itoa(nobody), home).Run(); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), filepath.Join(home, filepath.Base(suite)), "-test.run",
		"^TestConformance$", "-test.skip", "/death|/store/deaths", "-test.v")
	command.Dir = home
	command.Env = []string{
		"HOME=" + home, "TMPDIR=" + home, "PATH=" + os.Getenv("PATH"), acctest.BuiltVariable + "=" + home,
		fakenvml.BuiltVariable + "=" + fakenvml.Build(t, enginetest.Lacking),
	}
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	output, err := command.CombinedOutput()
	if err != nil || !bytes.Contains(output, []byte("--- PASS: TestConformance/create_and_observe")) {
		t.Errorf("as user %d: %v\n%s", nobody, err, output)
	}
}
