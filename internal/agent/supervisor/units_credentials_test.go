//go:build linux

package supervisor_test

import (
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// withSecret returns a member that prints the content of its folder, and then runs the script.
func (l *hostLab) withSecret(name, user, version, script string) domain.MemberSpec {
	l.Helper()
	spec := l.script(name, `cd "$CREDENTIALS_DIRECTORY" && stat -c '%n %a %U' * && cat token && cat setting`+script)
	spec.Container = domain.Container{
		User:    user,
		Configs: map[string]domain.ConfigFile{"setting": {Content: "rate=0.1\n", Mode: 0o644}},
		Secrets: map[string]domain.SecretFile{"token": {Version: version}},
	}
	return spec
}

// TestUnitCredentials: a member has its configs and secrets, also after a restart, and nobody else can read them.
func TestUnitCredentials(t *testing.T) {
	l := newHostLab(t, "credentials")
	for user, owner := range map[string]string{"": "root", "ops": "ops"} {
		spec := l.withSecret("of-"+owner, user, "1", "; echo $CREDENTIALS_DIRECTORY; sleep 1000")
		spec.Restart = domain.RestartRule{Condition: domain.RestartOnFailure, MaxAttempts: 5}
		spec.Secrets = domain.SecretValues{"worker": {"token": []byte("for " + owner + "\n")}}
		l.must(l.files().WriteSecrets(spec))
		l.start(spec)
		want := "setting 644 " + owner + "\ntoken 400 " + owner + "\nfor " + owner + "\nrate=0.1\n/"
		l.says(spec, want)
		_, rest, _ := strings.Cut(l.log(spec), "rate=0.1\n")
		l.eventually("the folder in the log", func() bool {
			_, rest, _ = strings.Cut(l.log(spec), "rate=0.1\n")
			return strings.HasSuffix(rest, "\n")
		})
		folder := strings.TrimSpace(rest)

		spy := l.script("spy-on-"+owner, "ls "+folder+" || cat "+folder+"/token "+folder+"/setting")
		spy.Container.User = "nobody"
		if state := l.ended(spy); state.State != domain.StateFailed ||
			!strings.Contains(l.log(spy), "Permission denied") ||
			strings.Contains(l.log(spy), "for ") || strings.Contains(l.log(spy), "rate") {
			t.Errorf("another user's member reads %s: %+v %s", folder, state, l.log(spy))
		}

		l.sh("systemctl kill --signal KILL '" + l.unitOf(spec) + "'")
		l.eventually(spec.Name+" to find them again", func() bool { return strings.Count(l.log(spec), want) == 2 })
		l.eventually("the folder of the former instance to be gone", func() bool {
			return l.out("ls -d "+folder+" 2>/dev/null") == "" || l.out("test -e "+folder+" || echo gone") == "gone"
		})

		// Another version is brought while it runs, and the old one is removed once nobody needs it.
		next := l.withSecret(spec.Name, user, "2", "")
		next.Secrets = domain.SecretValues{"worker": {"token": []byte("another\n")}}
		l.must(l.files().WriteSecrets(next))
		if _, err := l.files().ReadSecret(spec, "token"); err != nil {
			t.Error(err)
		}
		if state := l.ended(next); state.State != domain.StateCompleted ||
			!strings.Contains(l.log(next), "\nanother\n") {
			t.Errorf("%+v %s", state, l.log(next))
		}
		l.must(l.files().PruneSecrets("job"))
		if content, err := l.files().ReadSecret(spec, "token"); err == nil {
			t.Errorf("there is still %q", content)
		}
		if _, err := l.files().ReadSecret(next, "token"); err != nil {
			t.Error(err)
		}
	}
	lacking := l.withSecret("lacking", "", "1", "")
	if state := l.ended(lacking); !strings.Contains(state.LastError, `secret "token"`) {
		t.Errorf("without its secret it is %+v", state)
	}
}
