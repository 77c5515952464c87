//go:build linux

package supervisor_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// waits is a script that ends with code 5 once a file exists.
func waits(file string) string {
	return "echo ready; until [ -e " + file + " ]; do sleep 0.1; done; exit 5"
}

// TestUnitSupervisorDies: members keep running, and the next supervisor finds them.
func TestUnitSupervisorDies(t *testing.T) {
	l := newHostLab(t, "de-aths") // systemd escapes the hyphen
	member := l.script("member", waits("/tmp/deaths"))
	l.start(member)
	l.says(member, "ready")
	before := l.await(member, domain.StateRunning)
	l.succeed()
	if after := l.state(member); after.Instance != before.Instance || after.State != domain.StateRunning {
		t.Errorf("it was %+v, and is %+v", before, after)
	}
	l.sh("touch /tmp/deaths")
	if state := l.await(member, domain.StateFailed); *state.ExitCode != 5 || state.Instance != before.Instance {
		t.Errorf("its end is %+v", state)
	}
}

// TestUnitEndsUnseen: what happened while there was no supervisor is known to the next one.
func TestUnitEndsUnseen(t *testing.T) {
	l := newHostLab(t, "unseen")
	ready := "echo ready; until [ -e /tmp/unseen ]; do sleep 0.1; done; "
	wants := map[string]string{}
	var members []domain.MemberSpec
	add := func(name, script, want string) *domain.MemberSpec {
		members = append(members, l.script(name, ready+script))
		wants[name] = want
		return &members[len(members)-1]
	}
	add("code", "exit 9", "failed: exit code 9; restart condition is never")
	add("signal", "kill -KILL $$", "failed: exit code 137 (signal 9); restart condition is never")
	add("success", "exit 0", "completed: ")
	add("memory", "exec tail /dev/zero",
		"failed: exit code 137 (signal 9); restart condition is never: out of memory: its limit is 32 MiB").
		Resources.Limits.MemoryMiB = 32
	add("vanished", "", "failed: exit code 137 (signal 9); restart condition is never: its unit left no exit code")
	for _, spec := range members {
		l.start(spec)
	}
	for _, spec := range members {
		l.says(spec, "ready")
		l.await(spec, domain.StateRunning)
	}
	vanished := l.unitOf(members[4])
	l.sh("systemctl stop " + l.unit)
	l.sh("touch /tmp/unseen")
	l.awaitNoUnits("")
	l.sh("rm " + stateDir + "/unseen/exits/*" + strings.TrimSuffix(vanished[strings.LastIndex(vanished, "-")+1:],
		".service"))
	l.sh("systemctl start " + l.unit)
	for _, spec := range members {
		var state statedir.State
		l.eventually(spec.Name+" to end", func() bool {
			state = l.state(spec)
			return state.State.Ended()
		})
		if got := string(state.State) + ": " + state.LastError; got != wants[spec.Name] {
			t.Errorf("%s is %s\nwant %s", spec.Name, got, wants[spec.Name])
		}
	}
}

// TestUnitSystemdStartsAnew: systemd reloads its units, or re-executes itself.
func TestUnitSystemdStartsAnew(t *testing.T) {
	l := newHostLab(t, "anew")
	l.sh(`mkdir -p /srv/odd && cp /bin/sh '/srv/odd/$HOME %n;\x41'`)
	for _, command := range []string{"daemon-reload", "daemon-reexec"} {
		stubborn := l.script("stubborn-"+command,
			`trap 'echo "$1"; exit 4' USR2; echo ready; `+idle)
		stubborn.Command[0] = "/srv/odd/$HOME %n;\\x41"
		stubborn.Command = append(stubborn.Command, "sh", "%n $HOME \\x41")
		stubborn.Command = append(stubborn.Command, odd...)
		stubborn.Container.StopSignal, stubborn.Container.User = "SIGUSR2", "ops"
		ending := l.script("ending-"+command, waits("/tmp/"+command))
		for _, spec := range []domain.MemberSpec{stubborn, ending} {
			l.start(spec)
			l.says(spec, "ready")
			l.await(spec, domain.StateRunning)
		}
		l.sh("systemctl " + command)
		l.sh("touch /tmp/" + command)
		if state := l.await(ending, domain.StateFailed); *state.ExitCode != 5 {
			t.Errorf("%s: %+v", command, state)
		}
		l.stop(stubborn)
		if state := l.await(stubborn, domain.StateStopped); *state.ExitCode != 4 {
			t.Errorf("%s: %+v", command, state)
		}
		if output := l.log(stubborn); !strings.HasSuffix(output, "%n $HOME \\x41\n") {
			t.Errorf("%s: it says %q", command, output)
		}
		if state := l.ended(l.script("next-"+command, "exit 6")); *state.ExitCode != 6 {
			t.Errorf("%s: %+v", command, state)
		}
	}
}

// TestUnitSupervisorDiesAllAlong: whatever happens to members while supervisors are killed, the result is the same, and
// no member ever runs twice at the same time.
func TestUnitSupervisorDiesAllAlong(t *testing.T) {
	l := newHostLab(t, "dying")
	// All instances of a member run in its folder.
	const alone = `exec 9>lock; flock --nonblock 9 || echo twice; `
	type member struct {
		script string
		change func(*domain.MemberSpec)
		stop   bool
		state  domain.State
		code   int
		ends   string // what the error ends with
		runs   int
	}
	members := map[string]member{
		"failure": {"echo run; exit 3", nil, false, domain.StateFailed, 3, "", 1},
		"success": {"echo run; sleep 0.2; exit 0", nil, false, domain.StateCompleted, 0, "", 1},
		"restarts": {"echo run; sleep 0.02; exit 3", func(s *domain.MemberSpec) {
			s.Restart = domain.RestartRule{Condition: domain.RestartOnFailure, MaxAttempts: 30}
		}, false, domain.StateFailed, 3, "after 30 restarts", 31},
		"graceful": {
			`trap 'exit 0' TERM; echo run; ` + idle, nil, true, domain.StateStopped, 0, "", 1,
		},
		"forced": {`trap '' TERM; echo run; sleep 1000`, func(s *domain.MemberSpec) {
			s.GracePeriod = domain.Duration(300 * time.Millisecond)
		}, true, domain.StateStopped, 137, "", 1},
		"leaving": {`echo run; setsid sleep 4000 & sleep 0.1; exit 3`, nil, false, domain.StateFailed, 3, "", 1},
		"memory": {`echo run; exec tail /dev/zero`, func(s *domain.MemberSpec) { s.Resources.Limits.MemoryMiB = 32 },
			false,
			domain.StateFailed, 137, "out of memory: its limit is 32 MiB", 1},
		"user": {
			`echo run; [ "$(id -un)" = ops ] && exit 4`, func(s *domain.MemberSpec) { s.Container.User = "ops" }, false,
			domain.StateFailed, 4, "", 1,
		},
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // reproducible
	ctx, cancel := context.WithCancel(t.Context())
	killer := make(chan int)
	go func() {
		kills := 0
		defer func() { killer <- kills }()
		for kills < 40 {
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Duration(random.IntN(300)) * time.Millisecond):
			}
			if _, err := l.host.Run(ctx, "systemctl kill --signal KILL "+l.unit); err == nil {
				kills++
			}
		}
	}()
	specs := map[string]domain.MemberSpec{}
	for name, m := range members {
		spec := l.script(name, alone+m.script)
		if m.change != nil {
			m.change(&spec)
		}
		specs[name] = spec
		l.start(spec)
	}
	for name, m := range members {
		if m.stop {
			l.says(specs[name], "run")
			l.stop(specs[name])
		}
	}
	for name, m := range members {
		state := l.await(specs[name], m.state)
		if *state.ExitCode != m.code || !strings.HasSuffix(state.LastError, m.ends) {
			t.Errorf("%s: code %d: %s", name, *state.ExitCode, state.LastError)
		}
		output := l.log(specs[name])
		if strings.Contains(output, "twice") || strings.Count(output, "run\n") != m.runs {
			t.Errorf("%s ran %d times instead of %d:\n%s", name, strings.Count(output, "run\n"), m.runs, output)
		}
	}
	cancel()
	t.Logf("%d supervisors were killed", <-killer)
	l.eventually("what was left to end", func() bool { return l.processes("sleep 4000") == "0" })
}

// TestUnitReboot: whether the host was rebooted or lost power, what should run is started again, and what had ended
// stays ended.
func TestUnitReboot(t *testing.T) {
	l := newHostLab(t, "reboots")
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
		t.Run(name, func(t *testing.T) {
			l.T = t
			always := domain.RestartRule{Condition: domain.RestartOnFailure, MaxAttempts: 1}
			onwards := l.script("onwards-"+name, `echo ready; trap 'exit 143' TERM; `+idle)
			// This one looks as if it had completed.
			graceful := l.script("graceful-"+name, `echo ready; trap 'exit 0' TERM; `+idle)
			onwards.Restart, graceful.Restart = always, always
			never := l.script("never-"+name, `echo ready; sleep 1000`)
			for _, spec := range []domain.MemberSpec{onwards, graceful, never} {
				l.start(spec)
				l.says(spec, "ready")
				l.await(spec, domain.StateRunning)
			}
			completed, failed := l.script("completed-"+name, "true"), l.script("failed-"+name, "exit 3")
			l.ended(completed)
			l.ended(failed)
			l.must(reboot())
			for _, spec := range []domain.MemberSpec{onwards, graceful} {
				l.eventually(spec.Name+" to run again", func() bool { return strings.Count(l.log(spec), "ready") == 2 })
				if state := l.await(spec, domain.StateRunning); state.Restarts != 0 {
					t.Errorf("%s: %+v", spec.Name, state)
				}
			}
			if state := l.await(never,
				domain.StateFailed); !strings.HasSuffix(state.LastError, ": the machine was restarted") {
				t.Errorf("%s: %s", never.Name, state.LastError)
			}
			for spec, want := range map[*domain.MemberSpec]domain.State{
				&completed: domain.StateCompleted, &failed: domain.StateFailed,
			} {
				if state := l.state(*spec); state.State != want || strings.Contains(state.LastError, "restarted") {
					t.Errorf("%s: %+v", spec.Name, state)
				}
			}
		})
	}
	l.T = t
}

func TestManyUnits(t *testing.T) {
	l := newHostLab(t, "many")
	const members = 50
	specs := make([]domain.MemberSpec, members)
	for i := range specs {
		specs[i] = l.member(fmt.Sprint("member-", i), "sleep", "1000")
		l.start(specs[i])
	}
	for _, spec := range specs {
		l.await(spec, domain.StateRunning)
	}
}
