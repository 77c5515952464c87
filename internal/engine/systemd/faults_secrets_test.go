//go:build linux

package systemd_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// onlyItsOwner matches the line of a file that only its owner can read; it may begin with the name of the host.
var onlyItsOwner = regexp.MustCompile(`^(host[0-9]: )?[64]00 (root|ops) /var/lib/trainyard/`)

// TestSecretsFollowMembers: a member has its secret on any host, even if it is started without the one who provided it;
// apart from the member only root can read it there, and it is removed once nobody needs it.
func TestSecretsFollowMembers(t *testing.T) {
	f := newFaulty(t)
	one := 1
	group := func(version string) domain.Group {
		g := f.group("job", nil)
		g.Template = domain.Template{
			Command: []string{"/bin/sh", "-c", `sha256sum <"$CREDENTIALS_DIRECTORY/token"; sleep 100000`},
			Container: &domain.Container{User: "ops", Secrets: map[string]domain.SecretFile{
				"token": {Version: version},
			}},
		}
		g.Roles["on2"] = domain.Role{Replicas: &one, Placement: domain.Placement{Hosts: []string{"host2", "host3"}}}
		return g
	}
	update := func(version, value string) {
		t.Helper()
		f.must(reconcile.Reconciler{
			Engine: f.Engine, Secrets: domain.SecretValues{"on2": {"token": []byte(value)}},
		}.Update(f.bounded(), group(version)))
	}
	reads := func(value string, times int) {
		t.Helper()
		f.eventually(fmt.Sprintf("the member to read %s %d times", value, times), func() bool {
			log := f.anywhere(fmt.Sprintf("cat %s 2>/dev/null; true", f.dir().Log("job-on2-0")))
			return strings.Count(log, fmt.Sprintf("%x", sha256.Sum256([]byte(value)))) == times
		})
	}
	// found returns the files that hold a value, with their modes, and other places on a host that show it.
	found := func(value string) string {
		encoded := base64.RawStdEncoding.EncodeToString([]byte(value))
		// The brackets keep the pattern from matching itself.
		pattern := fmt.Sprintf("-e '[%c]%s' -e '[%c]%s'", value[0], value[1:], encoded[0], encoded[1:])
		return f.anywhere(fmt.Sprintf(`grep -rls %[1]s /var/lib/trainyard /run /etc/systemd /tmp | xargs -r stat -c '%%a %%U %%n'
journalctl --no-pager | grep %[1]s; systemctl show '*' | grep %[1]s; ps -ef | grep %[1]s; true`, pattern))
	}
	const first, second = "the-first-of-two", "the-second-of-two"
	update("1", first)
	reads(first, 1)
	files := found(first)
	t.Logf("the secret is in\n%s", files)
	if !strings.Contains(files, ".credentials/token") {
		t.Error("it is not where its member finds it")
	}
	for line := range strings.Lines(files) {
		if !onlyItsOwner.MatchString(line) {
			t.Errorf("others can read the secret: %s", line)
		}
	}

	on := map[string]int{"host2": 1, "host3": 2}
	from := on[f.observed(f.Engine, "job")["job-on2-0"].Host]
	to := 3 - from
	f.suffers(from, powerCut)
	f.eventually("the member to be elsewhere", func() bool {
		o := f.observed(f.Engine, "job")["job-on2-0"]
		return o.Host == f.host(to).Name && o.State == domain.StateRunning
	})
	f.must(f.host(from).Start(f.bounded()))
	f.suffers(to, reboot)
	f.eventually("the member to run again", func() bool {
		return strings.Count(f.sh(to, "cat "+f.dir().Log("job-on2-0")),
			fmt.Sprintf("%x", sha256.Sum256([]byte(first)))) == 2
	})
	f.eventually("the host that is back to forget its member", func() bool {
		return f.sh(from, "ls "+f.dir().Path("secrets")) == ""
	})

	update("2", second)
	reads(second, 1)
	f.eventually("the former secret to be gone", func() bool { return found(first) == "" })
	f.destroy("job")
	f.eventually("the secret to be gone", func() bool { return found(second) == "" })
	f.finish()
}
