//go:build linux

package supervisor_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/proctree"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

var testContext = context.Background()

// idle is the part of a script in which it does nothing but react to signals, at once.
const idle = "while :; do sleep 1000 & wait; done"

// odd are texts that are special to systemd or to shells, or would be lost on the way.
var odd = []string{
	"$HOME", "${HOME}", "$$", "%n", "%%", "%", `\n`, `\`, `a\`, `\x41`, `"`, `'`, `'"'`, "`id`", "$(id)", " ", "",
	" a  b ",
	"\t", "\n", "a\n", "\nb\n\n", "#", ";", "; true", "=", "a=b", "é", "日本", "\x01", "\x1b[31m", "\x7f", "\r\n",
	"\u0085", "*", "~", "@", "-", "+",
	"!", ":", "|", "{}", "\\\n", "$\n", strings.Repeat("long ", 10000),
}

// oddly returns a text made of a few odd ones.
func oddly(random *rand.Rand) string {
	var text strings.Builder
	for range random.IntN(6) {
		text.WriteString(odd[random.IntN(len(odd)-1)]) // except the long one
	}
	return text.String()
}

// TestUnitVerbatim: arguments and environment arrive byte for byte.
func TestUnitVerbatim(t *testing.T) {
	l := newHostLab(t, "verbatim")
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // reproducible

	args := odd
	for range 200 {
		args = append(args, oddly(random))
	}
	arguments := l.member("args", append([]string{"sh", "-c", `printf '%s\0' "$@"`, "sh"}, args...)...)
	if state := l.ended(arguments); state.State != domain.StateCompleted {
		t.Fatalf("%+v", state)
	}
	if diff := cmp.Diff(strings.Join(args, "\x00")+"\x00", l.log(arguments)); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}

	// Variables that systemd passes on itself, and those together with others that it wouldn't.
	for name, variables := range map[string]func(text string) string{
		"systemd": func(text string) string {
			return strings.NewReplacer("\x01", "", "\x1b", "", "\x7f", "", "\r", "", "\u0085", "").Replace(text)
		},
		"shell": func(text string) string { return text },
	} {
		environment := l.member("env-"+name, "cat", "/proc/self/environ")
		for i, text := range odd {
			environment.Env[fmt.Sprint("ODD_", i)] = variables(text)
		}
		for i := range 300 {
			environment.Env[fmt.Sprint("random_", i)] = variables(oddly(random))
		}
		for _, meant := range []string{"MAINPID", "EXIT_STATUS", "EXIT_CODE", "LD_PRELOAD"} {
			if name == "shell" {
				environment.Env[meant] = ""
			}
		}
		state := l.ended(environment)
		if state.State != domain.StateCompleted {
			t.Fatalf("%+v", state)
		}
		got := map[string]string{}
		for variable := range strings.SplitSeq(l.log(environment), "\x00") {
			if name, value, _ := strings.Cut(variable, "="); name != "" {
				got[name] = value
			}
		}
		if got[proctree.InstanceVariable] != state.Instance {
			t.Errorf("the mark is %q instead of %q", got[proctree.InstanceVariable], state.Instance)
		}
		for name := range got {
			if _, wanted := environment.Env[name]; !wanted {
				delete(got, name) // set by systemd itself
			}
		}
		if diff := cmp.Diff(environment.Env, got); diff != "" {
			t.Errorf("environment by %s (-want +got):\n%s", name, diff)
		}
	}
}

// TestUnitSecrets: only root can read the environment in what the host reports.
func TestUnitSecrets(t *testing.T) {
	l := newHostLab(t, "secrets")
	member := l.script("member", "echo ready; sleep 1000")
	member.Env["PASSWORD"] = "to\x01psecret" // with a character that a shell has to insert
	member.Container.User = "ops"
	l.start(member)
	l.says(member, "ready")
	for _, ask := range []string{
		"systemctl show " + "'" + l.unitOf(member) + "'", "systemctl cat '" + l.unitOf(member) + "'",
		"cat /run/systemd/transient/*", "cat /proc/*/cmdline",
		"cat /var/lib/trainyard/secrets/exits/*",
	} {
		if output := l.sh("setpriv --reuid nobody --clear-groups sh -c \"" + ask +
			"\" 2>&1 || true"); strings.Contains(output, "psecret") {
			t.Errorf("%s reveals the secret:\n%s", ask, output)
		}
	}
}

// TestUnitEnds: the way a command ends is the way it is reported.
func TestUnitEnds(t *testing.T) {
	l := newHostLab(t, "ends")
	l.sh(`printf '#!/no/such/interpreter\n' >/usr/local/bin/uninterpreted && chmod 755 /usr/local/bin/uninterpreted`)
	l.sh(
		`mkdir -p /srv/closed && chmod 700 /srv/closed && cp /bin/true /usr/local/bin/forbidden && chmod 700 /usr/local/bin/forbidden`,
	)
	for name, c := range map[string]struct {
		spec func(spec *domain.MemberSpec)
		code int
		err  string // what the error begins with; completed if it is empty
	}{
		"success":    {script("true"), 0, ""},
		"failure":    {script("exit 3"), 3, "exit code 3;"},
		"of-systemd": {script("exit 203"), 203, "exit code 203;"},
		"term":       {script("kill -TERM $$"), 143, "exit code 143 (signal 15);"},
		"segv":       {script("kill -SEGV $$"), 139, "exit code 139 (signal 11);"},
		"realtime":   {script("kill -36 $$"), 164, "exit code 164 (signal 36);"},
		"pipe":       {script("yes | true; kill -PIPE $$"), 141, "exit code 141 (signal 13);"},
		"last":       {script("exit 255"), 255, "exit code 255;"},
		"absent": {func(s *domain.MemberSpec) { s.Command = []string{"no-such-program"} }, 127,
			`it can't be started: "no-such-program" not found in PATH`},
		"interpreter": {func(s *domain.MemberSpec) { s.Command = []string{"/usr/local/bin/uninterpreted"} }, 127,
			`it can't be started: "/usr/local/bin/uninterpreted" can't be executed: interpreter "/no/such/interpreter" not found`},
		"forbidden": {func(s *domain.MemberSpec) { s.Command, s.Container.User = []string{"forbidden"}, "ops" }, 127,
			`it can't be started: "/usr/local/bin/forbidden" can't be executed as user "ops": permission denied`},
		"folder": {func(s *domain.MemberSpec) { s.WorkingDir = "/no/such/folder" }, 127,
			`it can't be started: its working directory "/no/such/folder" is not a folder`},
		"closed": {func(s *domain.MemberSpec) { s.WorkingDir, s.Container.User = "/srv/closed", "ops" }, 127,
			`it can't be started: its working directory "/srv/closed" can't be entered as user "ops": `},
		"user": {
			func(s *domain.MemberSpec) { s.Container.User = "nosuchuser" }, 127,
			`it can't be started: this host has no user "nosuchuser"`,
		},
		"group": {
			func(s *domain.MemberSpec) { s.Container.User = "ops:4711" }, 127,
			`it can't be started: this host has no group "4711"`,
		},
		"variable": {func(s *domain.MemberSpec) { s.Env["a.b"] = "" }, 127,
			`it can't be started: the environment variable "a.b" can't be passed on`},
	} {
		t.Run(name, func(t *testing.T) {
			l := *l
			l.T = t
			spec := l.script(name, "exit 1")
			c.spec(&spec)
			state := l.ended(spec)
			want := domain.StateFailed
			if c.err == "" {
				want = domain.StateCompleted
			}
			if state.State != want || state.ExitCode == nil || *state.ExitCode != c.code ||
				!strings.HasPrefix(state.LastError, c.err) {
				t.Errorf("it is %s, with code %v: %s", state.State, *state.ExitCode, state.LastError)
			}
		})
	}
}

func script(text string) func(*domain.MemberSpec) {
	return func(s *domain.MemberSpec) { s.Command = []string{"sh", "-c", text} }
}

// TestUnitRestarts: a member is restarted by its rule.
func TestUnitRestarts(t *testing.T) {
	l := newHostLab(t, "restarts")
	member := l.script("member", `date +%s%N; exec sh -c 'date +%s%N; exit 5'`)
	member.Restart = domain.RestartRule{Condition: domain.RestartOnFailure, MaxAttempts: 20}
	state := l.ended(member)
	if state.State != domain.StateFailed || state.Restarts != 20 ||
		state.LastError != "exit code 5, after 20 restarts" {
		t.Errorf("it is %s after %d restarts: %s", state.State, state.Restarts, state.LastError)
	}
	times := strings.Fields(l.log(member))
	var longest, sum time.Duration
	for i := 1; i+1 < len(times); i += 2 {
		var end, start int64
		if _, err := fmt.Sscan(times[i], &end); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Sscan(times[i+1], &start); err != nil {
			t.Fatal(err)
		}
		longest, sum = max(longest, time.Duration(start-end)), sum+time.Duration(start-end)
	}
	t.Logf("from an end to the next start: %s on average, %s at most", sum/20, longest)
	l.awaitNoUnits("member")
}

// TestUnitStops: all processes of a member are asked to end, and killed after the grace period.
func TestUnitStops(t *testing.T) {
	l := newHostLab(t, "stops")
	for name, c := range map[string]struct {
		script string
		grace  time.Duration
		signal string
		code   int
		says   string
	}{
		"gracefully": {
			`trap 'echo bye; exit 0' TERM; echo ready; ` + idle, time.Minute, "", 0, "bye\n",
		},
		"by-another-signal": {
			`trap 'echo bye; exit 4' USR1; echo ready; ` + idle, time.Minute, "SIGUSR1", 4,
			"bye\n",
		},
		"all-of-them": {
			`trap 'wait; exit 7' TERM; sh -c 'trap "echo child; exit" TERM; echo ready; ` + idle + `' & wait`,

			time.Minute, "", 7, "child\n",
		},
		"by-force": {`trap '' TERM; echo ready; sleep 1000`, 200 * time.Millisecond, "", 137, ""},
		"at-once":  {`trap '' TERM; echo ready; sleep 1000`, 0, "", 137, ""},
		"with-a-rest": {
			`trap 'exit 3' TERM; sh -c 'trap "" TERM; echo ready; sleep 1000.5' & ` + idle,
			time.Hour, "", 3, "",
		},
		"paused": {`echo ready; kill -STOP $$; sleep 1000`, time.Minute, "", 143, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := *l
			l.T = t
			spec := l.script(name, c.script)
			spec.GracePeriod, spec.Container.StopSignal = domain.Duration(c.grace), c.signal
			spec.Restart = domain.RestartRule{Condition: domain.RestartAlways}
			l.start(spec)
			l.says(spec, "ready")
			asked := time.Now()
			l.stop(spec)
			state := l.await(spec, domain.StateStopped)
			t.Logf("stopped after %s", time.Since(asked))
			if *state.ExitCode != c.code || state.LastError != "" {
				t.Errorf("code %d: %s", *state.ExitCode, state.LastError)
			}
			if !strings.HasSuffix(l.log(spec), c.says) {
				t.Errorf("it says %q", l.log(spec))
			}
			if left := l.processes("sleep 1000"); left != "0" {
				t.Errorf("%s processes are left", left)
			}
		})
	}
}

// TestUnitLeavesNothing: what a command leaves running is killed at once, without being asked to end.
func TestUnitLeavesNothing(t *testing.T) {
	l := newHostLab(t, "orphans")
	spec := l.script("member",
		`trap "" TERM; for i in 1 2 3; do setsid sh -c 'sleep 2000 & wait' & done; (sleep 2000 & sleep 2000 &) & sleep 0.05; exit 3`)
	spec.GracePeriod = domain.Duration(time.Hour)
	if state := l.ended(spec); *state.ExitCode != 3 {
		t.Errorf("%+v", state)
	}
	if left := l.processes("sleep 2000"); left != "0" {
		t.Errorf("%s processes are left", left)
	}
	// Also without a supervisor.
	again := l.script("member",
		`trap "" TERM; setsid sleep 3000 & echo ready; until [ -e /tmp/orphans ]; do sleep 0.1; done`)
	again.GracePeriod = domain.Duration(time.Hour)
	l.start(again)
	l.says(again, "ready")
	l.sh("systemctl stop " + l.unit + " && touch /tmp/orphans")
	l.eventually("what is left to end", func() bool { return l.processes("sleep 3000") == "0" })
	l.sh("systemctl start " + l.unit)
	l.await(again, domain.StateCompleted)
}
