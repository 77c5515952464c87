//go:build linux

package supervisor_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/patience"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/containers"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// TestContainerEnds: the way a command ends is the way it is reported.
func TestContainerEnds(t *testing.T) {
	l := newContainerLab(t, "c-ends")
	for name, c := range map[string]struct {
		spec func(spec *domain.MemberSpec)
		code int
		err  string // what the error begins with; completed if it is empty
	}{
		"success": {containedScript("true"), 0, ""},
		"failure": {containedScript("exit 3"), 3, "exit code 3;"},
		// the first process gets no signal that it doesn't handle
		"term": {containedScript("kill -TERM $$; sleep 1; kill -KILL 0; exit 4"), 4, "exit code 4;"},
		"last": {containedScript("exit 255"), 255, "exit code 255;"},
		"command": {
			func(s *domain.MemberSpec) { s.Command, s.Args = []string{"sh", "-c"}, []string{"exit 6"} }, 6,
			"exit code 6;",
		},
		"absent": {func(s *domain.MemberSpec) { s.Command, s.Args = []string{"no-such-program"}, nil }, 127,
			`it can't be started: the Docker Engine says: `},
		"image": {func(s *domain.MemberSpec) { s.Image, s.Container.PullPolicy = "no-such-image:1", domain.PullNever },
			125,

			`it can't be started: the Docker Engine says: image "no-such-image:1" not found on this host, and its pull policy is "never"`},
		"pull": {func(s *domain.MemberSpec) { s.Image = "localhost:1/no-such-image:1" }, 125,
			`it can't be started: the Docker Engine says: image "localhost:1/no-such-image:1" can't be pulled: `},
		"always": {
			func(s *domain.MemberSpec) { s.Container.PullPolicy, s.Image = domain.PullAlways, "localhost:1/shell" },
			125,
			`it can't be started: the Docker Engine says: image "localhost:1/shell" can't be pulled: `,
		},
		"mount": {
			func(s *domain.MemberSpec) { s.Mounts = []domain.Mount{{Source: "/no/such/folder", Target: "/data"}} },
			125,

			`it can't be started: the Docker Engine says: `,
		},
		"NFS": {func(s *domain.MemberSpec) { s.Mounts = []domain.Mount{unserved} }, 125,
			`it can't be started: the Docker Engine says: error while mounting volume '/var/lib/docker/volumes/`},
		"user": {
			func(s *domain.MemberSpec) { s.Container.User = "nosuchuser" }, 125,
			`it can't be started: the Docker Engine says: `,
		},
		"unhealthy": {func(s *domain.MemberSpec) {
			s.Args = []string{"-c", "trap 'exit 0' TERM; " + idle}
			s.Container.HealthCheck = check("echo ill; exit 1")
		}, 1, "exit code 1; restart condition is never: its health check failed: ill"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := *l
			l.T = t
			spec := l.contained(name, "exit 1")
			c.spec(&spec)
			state := l.ended(spec)
			want := domain.StateFailed
			if c.err == "" {
				want = domain.StateCompleted
			}
			if state.State != want || state.ExitCode == nil || *state.ExitCode != c.code ||
				!strings.HasPrefix(state.LastError, c.err) {
				t.Errorf("it is %s, with code %d: %s", state.State, *state.ExitCode, state.LastError)
			}
		})
	}
}

// TestContainerMemory: a container beyond its limit is ended, and that is reported.
func TestContainerMemory(t *testing.T) {
	t.Parallel()
	l := newContainerLab(t, "c-memory")
	spec := l.contained("worker", "until [ -e /srv/of-c-memory ]; do sleep 0.1; done; exec tail /dev/zero")
	spec.Mounts = []domain.Mount{{Source: "/srv", Target: "/srv"}}
	spec.Resources.Limits.MemoryMiB = 32
	l.start(spec)
	l.await(spec, domain.StateRunning) // from when on its memory is watched
	l.sh("touch /srv/of-c-memory")
	const want = "exit code 137 (signal 9); restart condition is never: out of memory: its limit is 32 MiB"
	if state := l.await(spec, domain.StateFailed); *state.ExitCode != 137 || !strings.HasPrefix(state.LastError, want) {
		t.Errorf("it ended with code %d: %s", *state.ExitCode, state.LastError)
	}
	l.sh("rm /srv/of-c-memory")
}

// TestContainerMemoryAtOnce: so are many that exceed it as soon as they start, of which the Engine misses some, and
// most end before anybody has looked at them.
func TestContainerMemoryAtOnce(t *testing.T) {
	t.Parallel()
	l := newContainerLab(t, "c-at-once")
	var specs []domain.MemberSpec
	for n := range 32 {
		spec := l.contained(fmt.Sprintf("worker%d", n), "exec tail /dev/zero")
		spec.Resources.Limits.MemoryMiB = 8
		specs = append(specs, spec)
		l.start(spec)
	}
	const want = "exit code 137 (signal 9); restart condition is never: out of memory: its limit is 8 MiB"
	for _, spec := range specs {
		state := l.await(spec, domain.StateFailed)
		if !strings.HasPrefix(state.LastError, want) || state.OutOfMemory == nil {
			t.Errorf("%s ended with code %d: %s", spec.Name, *state.ExitCode, state.LastError)
		}
	}
}

// unserved is an export of NFS that nobody serves. Most kernels that tests run on don't even know NFS.
var unserved = domain.Mount{Type: domain.MountVolume, Target: "/data", Driver: &domain.VolumeDriver{
	Name:    "local",
	Options: map[string]string{"type": "nfs", "o": "addr=127.0.0.1,rw,soft,timeo=1", "device": ":/export/data"},
}}

func containedScript(text string) func(spec *domain.MemberSpec) {
	return func(spec *domain.MemberSpec) { spec.Args = []string{"-c", text} }
}

// check is a frequent health check.
func check(script string) *domain.HealthCheck {
	soon, long := domain.Duration(100*time.Millisecond), domain.Duration(patience.Limit)
	return &domain.HealthCheck{Command: []string{"/bin/sh", "-c", script}, Interval: &soon, Timeout: &long, Retries: 2}
}

// TestContainerRestarts: a member is restarted by its rule, with each attempt counted, and all output in its log.
func TestContainerRestarts(t *testing.T) {
	t.Parallel()
	l := newContainerLab(t, "c-restarts")
	spec := l.contained("worker", "echo run; echo of $TRAINYARD_INSTANCE >&2; exit 3")
	restarting(&spec, 2)
	state := l.ended(spec)
	if state.State != domain.StateFailed || state.Restarts != 2 || *state.ExitCode != 3 ||
		state.LastError != "exit code 3, after 2 restarts" {
		t.Errorf("%+v", state)
	}
	if output := l.log(spec); strings.Count(output, "run\n") != 3 || strings.Count(output, "of ") != 3 ||
		!strings.Contains(output, "of "+state.Instance+"\n") {
		t.Errorf("it says %q", output)
	}
}

// TestContainerStops: a member is stopped with its signal and grace period, and killed after that.
func TestContainerStops(t *testing.T) {
	t.Parallel()
	l := newContainerLab(t, "c-stops")
	docker, err := containers.Open(l.path(containers.Socket))
	l.must(err)
	graceful := l.contained("graceful", "trap 'echo signalled; exit 4' USR2; echo ready; "+idle)
	graceful.Container.StopSignal = "SIGUSR2"
	paused := l.contained("paused", "trap 'exit 6' TERM; echo ready; "+idle)
	stubborn := l.contained("stubborn", "trap '' TERM; echo ready; sleep 1000")
	stubborn.GracePeriod = short
	for spec, code := range map[*domain.MemberSpec]int{&graceful: 4, &paused: 6, &stubborn: 137} {
		l.start(*spec)
		l.says(*spec, "ready")
		l.await(*spec, domain.StateRunning)
		if spec == &paused {
			for range 10 { // so fast that the Engine misses some of it
				l.must(docker.Pause(t.Context(), l.containerOf(*spec)))
				l.must(docker.Continue(t.Context(), l.containerOf(*spec)))
			}
			l.eventually("the Engine to catch up", func() bool { return !l.inspect(*spec).State.Paused })
			for range 2 { // it is paused already
				l.must(docker.Pause(t.Context(), l.containerOf(*spec)))
			}
			l.eventually("the container to be halted", func() bool { return l.inspect(*spec).State.Paused })
		}
		l.stop(*spec)
		if state := l.await(*spec, domain.StateStopped); *state.ExitCode != code {
			t.Errorf("%+v", state)
		}
	}
	l.says(graceful, "signalled")
	l.eventually("the containers to be removed", func() bool { return len(l.containers()) == 0 })
}

// TestContainerSettings: a specification's container settings are in force.
func TestContainerSettings(t *testing.T) {
	t.Parallel()
	l := newContainerLab(t, "c-settings")
	l.sh("mkdir -p /srv/c-settings && echo given >/srv/c-settings/file")
	spec := l.contained("worker", `
		echo "$0 $# $VARIABLE $PATH"; pwd; id -u; id -g; ulimit -n; df -k /dev/shm | tail -1; df -k /scratch | tail -1; df -k /made | tail -1
		cat /srv/given/file /run/trainyard/hostfile "$HOSTFILE" /etc/worker.yaml /run/secrets/token
		stat -c '%n %a %u %g' /etc/worker.yaml /run/secrets/token
		touch /srv/given/file 2>/dev/null && echo writable
		cat /proc/1/comm; echo to-keep >`+"/srv/kept-of-c-settings/out"+`; echo ready; sleep 1000`)
	spec.Args = append(spec.Args, "$0", "a", "b")
	spec.Env["VARIABLE"], spec.Env["HOSTFILE"] = "a $b 'c'", stateDir+"/c-settings/files/worker/hostfile"
	spec.WorkingDir, spec.Kept = "/tmp", "/srv/kept-of-c-settings"
	spec.Files = []domain.File{{Name: "hostfile", Content: "of all\n"}}
	spec.Resources.Limits = domain.Resources{CPUs: 0.5, MemoryMiB: 64}
	spec.Mounts = []domain.Mount{
		{Source: "/srv/c-settings", Target: "/srv/given", ReadOnly: true},
		{Type: domain.MountTmpfs, Target: "/scratch", SizeMiB: 3},
		{Type: domain.MountVolume, Source: "of-c-settings", Target: "/volume"},
		{Type: domain.MountVolume, Target: "/unnamed"},
		{Type: domain.MountVolume, Source: "made-for-c-settings", Target: "/made", Driver: &domain.VolumeDriver{
			Name: "local", Options: map[string]string{"type": "tmpfs", "device": "tmpfs", "o": "size=5m"},
		}},
	}
	spec.Secrets = domain.SecretValues{"worker": {"token": []byte("secret\n")}}
	spec.Container = domain.Container{
		User: "1234:567", Init: true, ShmSizeMiB: 2,
		Ulimits: map[string]domain.Ulimit{"nofile": {Soft: 123, Hard: 456}},
		Configs: map[string]domain.ConfigFile{
			"setting": {Content: "rate: 0.1\n", Target: "/etc/worker.yaml", Mode: 0o440},
		},
		Secrets: map[string]domain.SecretFile{"token": {Version: "1", Mode: 0o444}},
		Logging: &domain.Logging{Driver: "local", Options: map[string]string{"max-size": "1m"}},
	}
	spec.Container.Configs["setting"] = domain.ConfigFile{Content: "rate: 0.1\n", Target: "/etc/worker.yaml"}
	l.must(l.files().WriteSecrets(spec))
	l.start(spec)
	l.says(spec, "ready")
	want := "$0 2 a $b 'c' /bin\n/tmp\n1234\n567\n123\n"
	output := l.log(spec)
	if !strings.HasPrefix(output, want) {
		t.Errorf("it says %q\nwant %q", output, want)
	}
	for _, want := range []string{
		" 2048 ", " 3072 ", " 5120 ",
		"given\nof all\nof all\nrate: 0.1\nsecret\n/etc/worker.yaml 444 0 0\n/run/secrets/token 444 0 0\n",
	} {
		if !strings.Contains(output, want) {
			t.Errorf("it says %q\nwant %q", output, want)
		}
	}
	if strings.Contains(output, "writable") || l.sh("cat /srv/kept-of-c-settings/out") != "to-keep" ||
		strings.Contains(output, "\nsh\nready") {
		t.Errorf("it says %q", output)
	}
	found := l.inspect(spec)
	if found.HostConfig.NanoCPUs != 5e8 || found.HostConfig.Memory != 64<<20 || found.HostConfig.MemorySwap != 64<<20 ||
		found.HostConfig.NetworkMode != "host" || !found.HostConfig.RestartPolicy.IsNone() ||
		found.HostConfig.AutoRemove ||
		found.HostConfig.LogConfig.Type != "local" || *found.Config.StopTimeout != 60 {
		t.Errorf("%+v", found.HostConfig)
	}
	for label, want := range spec.Labels() {
		if found.Config.Labels[label] != want {
			t.Errorf("label %s is %q instead of %q", label, found.Config.Labels[label], want)
		}
	}
	groups := l.sh(fmt.Sprintf("cat /proc/%d/cgroup", found.State.Pid))
	if !strings.Contains(groups,
		`/trainyard.slice/trainyard-c\x2dsettings.slice/trainyard-c\x2dsettings-job.slice/docker-`+found.ID) {
		t.Errorf("it is in %s", groups)
	}
	// The agent recognises members' processes by their mark.
	if marked := l.sh("grep --text --files-with-matches TRAINYARD_INSTANCE=" + l.state(spec).Instance +
		" /proc/[0-9]*/environ 2>/dev/null || true"); !strings.Contains(marked,
		fmt.Sprintf("/proc/%d/", found.State.Pid)) {
		t.Errorf("only %s have the mark", marked)
	}
	// Only root can read on the host what the container was given.
	if readable := l.sh("setpriv --reuid nobody --clear-groups sh -c 'cat " + stateDir + "/*/exits/*/*; ls " +
		stateDir + "/*/exits' 2>&1 || true"); strings.Contains(readable, "secret\n") {
		t.Errorf("others read %s", readable)
	}
	l.stop(spec)
	l.await(spec, domain.StateStopped)
	l.eventually("its volumes to be free", func() bool {
		return l.out("docker volume rm of-c-settings made-for-c-settings") == "of-c-settings\nmade-for-c-settings"
	})
	l.sh("rm -r /srv/c-settings /srv/kept-of-c-settings")
}

// TestContainerWaits: a member runs once its image is there and its health check has passed; until then, its state says
// what it waits for.
func TestContainerWaits(t *testing.T) {
	t.Parallel()
	l := newContainerLab(t, "c-waits")
	spec := l.contained("worker", "echo ready; sleep 1000")
	spec.GracePeriod = short
	spec.Mounts = []domain.Mount{{Source: "/srv", Target: "/srv"}}
	spec.Container.HealthCheck = check("[ -e /srv/of-c-waits ]")
	spec.Container.HealthCheck.Retries = 1000
	l.start(spec)
	l.says(spec, "ready")
	l.eventually("the member to wait", func() bool {
		return l.state(spec).LastError == "its health check has not passed yet" &&
			l.state(spec).State == domain.StatePending
	})
	l.succeed()
	if state := l.state(spec); state.State != domain.StatePending {
		t.Errorf("%+v", state)
	}
	l.sh("touch /srv/of-c-waits")
	if state := l.await(spec, domain.StateRunning); state.LastError != "" || state.Restarts != 0 {
		t.Errorf("%+v", state)
	}
	if output := l.log(spec); output != "ready\n" {
		t.Errorf("it says %q", output)
	}

	// A slow registry delays no other member, and its pull can be cancelled.
	l.must(os.WriteFile(l.path("/srv/slow.py"), []byte(`import socket, time
server = socket.create_server(("127.0.0.1", 5999))
time.sleep(1000)
`), 0o600))
	l.sh("systemd-run --quiet --unit of-c-waits.service python3 /srv/slow.py")
	l.eventually("the registry to listen",
		func() bool { return strings.Contains(l.out("ss --listening --tcp --numeric"), ":5999") })
	pulling := l.contained("pulling", "true")
	pulling.Image = "localhost:5999/slow:1"
	restarting(&pulling, 1000) // the Engine gives such a registry up after half a minute
	l.start(pulling)
	l.eventually("the image to be pulled",
		func() bool { return l.state(pulling).LastError == `pulling image "localhost:5999/slow:1"` })
	if state := l.ended(l.contained("other", "exit 7")); *state.ExitCode != 7 {
		t.Errorf("%+v", state)
	}
	l.stop(pulling)
	l.await(pulling, domain.StateStopped)
	l.sh("systemctl stop of-c-waits.service; rm /srv/of-c-waits /srv/slow.py")
}

// TestContainerLog: all output is in the members' logs exactly once, including what was written while there was no
// supervisor, and lines longer than Docker's maximum.
func TestContainerLog(t *testing.T) {
	t.Parallel()
	l := newContainerLab(t, "c-logs")
	spec := l.contained("worker",
		"seq 1 2000; echo ready; until [ -e /srv/of-c-logs ]; do sleep 0.01; done; seq -s - 1 20000; seq 2001 9000; exit 3")
	spec.Mounts = []domain.Mount{{Source: "/srv", Target: "/srv"}}
	l.start(spec)
	l.says(spec, "ready")
	l.await(spec, domain.StateRunning)
	l.sh("systemctl stop " + l.unit + " && touch /srv/of-c-logs")
	l.eventually("the container to end",
		func() bool { return strings.Contains(l.out("docker ps"), l.cluster) == false })
	l.sh("systemctl start " + l.unit)
	l.await(spec, domain.StateFailed)
	if want := l.sh("seq 1 2000; echo ready; seq -s - 1 20000; seq 2001 9000"); strings.TrimSpace(l.log(spec)) != want {
		t.Errorf("its log has %d bytes instead of %d", len(l.log(spec)), len(want))
	}
	l.sh("rm /srv/of-c-logs")
	silent := l.contained("silent", "echo unheard; exit 4")
	silent.Container.Logging = &domain.Logging{Driver: "none"}
	if state := l.ended(silent); *state.ExitCode != 4 || l.log(silent) != "" {
		t.Errorf("%+v %q", state, l.log(silent))
	}
}
