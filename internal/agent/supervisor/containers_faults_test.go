//go:build linux

package supervisor_test

import (
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// running starts a member and waits until it is ready.
func (l *hostLab) running(spec domain.MemberSpec) {
	l.Helper()
	l.start(spec)
	l.says(spec, "ready")
	l.await(spec, domain.StateRunning)
}

// TestContainerSupervisorDies: members keep running, and the next supervisor finds them, and knows what was requested
// of them.
func TestContainerSupervisorDies(t *testing.T) {
	t.Parallel()
	l := newContainerLab(t, "c-deaths")
	spec := l.contained("worker", "echo ready; until [ -e /srv/of-c-deaths ]; do sleep 0.1; done; echo over; exit 5")
	spec.Mounts = []domain.Mount{{Source: "/srv", Target: "/srv"}}
	stopped := l.contained("stopped", "trap 'exit 6' TERM; echo ready; "+idle)
	l.running(spec)
	l.running(stopped)
	before := l.state(spec)
	l.succeed()
	if after := l.state(spec); after.Instance != before.Instance || after.State != domain.StateRunning {
		t.Errorf("it was %+v, and is %+v", before, after)
	}
	// It dies right after requesting a member's end.
	l.stop(stopped)
	l.kill()
	if state := l.await(stopped, domain.StateStopped); *state.ExitCode != 6 {
		t.Errorf("%+v", state)
	}
	l.sh("touch /srv/of-c-deaths")
	if state := l.await(spec, domain.StateFailed); *state.ExitCode != 5 || state.Instance != before.Instance {
		t.Errorf("its end is %+v", state)
	}
	if output := l.log(spec); output != "ready\nover\n" {
		t.Errorf("it says %q", output)
	}
	l.sh("rm /srv/of-c-deaths")
}

// TestContainerVanishes: a container that somebody removed counts as failed.
func TestContainerVanishes(t *testing.T) {
	t.Parallel()
	l := newContainerLab(t, "c-vanishes")
	spec := l.contained("worker", "echo ready; sleep 1000")
	spec.GracePeriod = short
	restarting(&spec, 5)
	l.running(spec)
	l.sh("docker rm --force " + l.containerOf(spec))
	l.eventually("the member to run again", func() bool { return strings.Count(l.log(spec), "ready") == 2 })
	if state := l.await(spec, domain.StateRunning); state.Restarts != 1 || state.LastError == "" {
		t.Errorf("%+v", state)
	}
}

// TestContainerWithdrawn: members that are withdrawn while they are being started leave nothing behind, which the lab
// checks.
func TestContainerWithdrawn(t *testing.T) {
	t.Parallel()
	l := newContainerLab(t, "c-withdrawn")
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
		spec := l.contained(name, "trap 'exit 0' TERM; "+idle)
		spec.GracePeriod = short
		l.start(spec)
	}
	l.eventually("the first container", func() bool { return len(l.containers()) > 0 })
}

// TestContainerEngineRestarts: members that end because the Engine does are started again, without counting as failed.
// While the Engine is down, no member is lost, and those without an image keep running.
func TestContainerEngineRestarts(t *testing.T) {
	l := newContainerLab(t, "c-engine")
	// it looks as if it completed
	graceful := l.contained("graceful", "trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done")
	restarting(&graceful, 1)
	never := l.contained("never", "trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done")
	plain := l.script("plain", "echo ready; sleep 1000")
	l.running(graceful)
	l.running(never)
	l.running(plain)
	completed := l.contained("completed", "exit 0")
	l.ended(completed)
	instance := l.state(plain).Instance

	l.sh("systemctl stop docker.socket docker.service")
	if state := l.state(graceful); state.State != domain.StateRunning {
		t.Errorf("while the engine is away: %+v", state)
	}
	waiting := l.contained("waiting", "echo ready; sleep 1000")
	waiting.GracePeriod = short
	l.start(waiting)
	l.eventually("the missing engine to be reported", func() bool {
		return strings.HasPrefix(l.state(waiting).LastError,
			"the Docker Engine of this host doesn't answer: dial unix /run/docker.sock: ")
	})
	if state := l.ended(l.script("another", "exit 7")); *state.ExitCode != 7 {
		t.Errorf("without an engine: %+v", state)
	}
	l.succeed() // the next supervisor doesn't find an Engine either
	for _, spec := range []domain.MemberSpec{graceful, never} {
		if state := l.state(spec); state.State != domain.StateRunning {
			t.Errorf("while the engine is away: %+v", state)
		}
	}
	l.sh("systemctl start docker.socket docker.service")
	l.says(waiting, "ready")
	l.await(waiting, domain.StateRunning)
	l.eventually("the member to run again", func() bool { return strings.Count(l.log(graceful), "ready") == 2 })
	if state := l.await(graceful, domain.StateRunning); state.Restarts != 0 {
		t.Errorf("%+v", state)
	}
	if state := l.await(never,
		domain.StateFailed); state.LastError != "it was terminated with exit code 0: the Docker Engine was restarted" {
		t.Errorf("%+v", state)
	}

	// Also if the Engine is killed, or restarted at once, and if the supervisor sees that.
	for number, how := range []string{
		"systemctl restart docker.service", "systemctl kill --signal KILL docker.service",
	} {
		l.sh(how)
		l.eventually("the member to run again after "+how,
			func() bool { return strings.Count(l.log(graceful), "ready") == 3+number })
		if state := l.await(graceful, domain.StateRunning); state.Restarts != 0 {
			t.Errorf("%+v", state)
		}
	}
	if state := l.state(plain); state.Instance != instance || state.State != domain.StateRunning {
		t.Errorf("the plain member is %+v", state)
	}
	if state := l.state(completed); state.State != domain.StateCompleted {
		t.Errorf("%+v", state)
	}

	// What had ended before the Engine did counts as ended, though nobody saw it.
	early := l.contained("early", "trap 'exit 0' TERM; echo ready; until [ -e /srv/of-c-engine ]; do sleep 0.01; done")
	early.Mounts = []domain.Mount{{Source: "/srv", Target: "/srv"}}
	restarting(&early, 1)
	l.running(early)
	container := l.containerOf(early)
	l.sh("systemctl stop " + l.unit + " && touch /srv/of-c-engine")
	l.eventually("it to have ended some time ago", func() bool {
		at, err := time.Parse(time.RFC3339Nano, l.out("docker inspect --format '{{.State.FinishedAt}}' "+container))
		return err == nil && !at.IsZero() && time.Since(at) > time.Second
	})
	l.sh("systemctl restart docker.service && systemctl start " + l.unit)
	if state := l.await(early, domain.StateCompleted); *state.ExitCode != 0 {
		t.Errorf("%+v", state)
	}
	l.eventually("the member to run again", func() bool { return strings.Count(l.log(graceful), "ready") == 5 })
	l.sh("rm /srv/of-c-engine")
}

// TestContainerReboot: whether the host was rebooted or lost power, what should run is started again, and what had
// ended stays ended.
func TestContainerReboot(t *testing.T) {
	l := newContainerLab(t, "c-reboots")
	for name, reboot := range map[string]func() error{
		"asked": func() error { return l.host.Reboot(t.Context()) },
		"power": func() error {
			l.sh("sync")
			if err := l.host.Kill(); err != nil {
				return err
			}
			return l.host.Start(t.Context())
		},
	} {
		// it looks as if it completed
		graceful := l.contained("graceful-"+name, "trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done")
		restarting(&graceful, 1)
		never := l.contained("never-"+name, "trap 'exit 143' TERM; echo ready; while :; do sleep 0.05; done")
		l.running(graceful)
		l.running(never)
		completed, failed := l.contained("completed-"+name, "true"), l.contained("failed-"+name, "exit 3")
		l.ended(completed)
		l.ended(failed)
		l.must(reboot())
		l.eventually("the member to run again", func() bool { return strings.Count(l.log(graceful), "ready") == 2 })
		if state := l.await(graceful, domain.StateRunning); state.Restarts != 0 {
			t.Errorf("%+v", state)
		}
		if state := l.await(never,
			domain.StateFailed); !strings.HasSuffix(state.LastError, ": the machine was restarted") {
			t.Errorf("%+v", state)
		}
		for spec, want := range map[*domain.MemberSpec]domain.State{
			&completed: domain.StateCompleted, &failed: domain.StateFailed,
		} {
			if state := l.state(*spec); state.State != want || strings.Contains(state.LastError, "restarted") {
				t.Errorf("%+v", state)
			}
		}
		l.stop(graceful)
		l.await(graceful, domain.StateStopped)
	}
}

// TestContainerGPUs: a container has its member's GPUs and no others; one that requests a GPU of another host can't be
// started.
func TestContainerGPUs(t *testing.T) {
	l := newContainerLab(t, "c-gpus")
	own := l.contained("own", "cat "+testbed.VisibleDevices)
	own.Env["NVIDIA_VISIBLE_DEVICES"] = "GPU-2,GPU-1"
	if state := l.ended(own); state.State != domain.StateFailed || *state.ExitCode != 125 ||
		!strings.Contains(state.LastError, "capabilities: [[gpu]]") {
		t.Errorf("without the container toolkit: %+v", state)
	}
	t.Cleanup(func() { l.out("rm -f /usr/bin/nvidia-container-runtime-hook && systemctl restart docker") })
	l.must(l.host.InstallNVIDIA(t.Context(), "GPU-1", "GPU-2", "GPU-3"))
	own.Run, own.Hash = 10, "10"
	if state := l.ended(own); state.State != domain.StateCompleted || l.log(own) != "GPU-2\nGPU-1\n" {
		t.Errorf("%+v %q", state, l.log(own))
	}
	foreign := l.contained("foreign", "true")
	foreign.Env["NVIDIA_VISIBLE_DEVICES"] = "GPU-9"
	if state := l.ended(foreign); state.State != domain.StateFailed ||
		!strings.Contains(state.LastError, "GPU-9: unknown device") {
		t.Errorf("%+v", state)
	}
	none := l.contained("none", "[ ! -e "+testbed.VisibleDevices+" ]")
	none.Env["NVIDIA_VISIBLE_DEVICES"] = "void"
	if state := l.ended(none); state.State != domain.StateCompleted {
		t.Errorf("%+v", state)
	}
}
