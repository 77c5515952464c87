package systemd

import (
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/sshclient"
)

// TestLoginFor: the controller logs in as the provider does. Without a user anywhere, that is this machine's user,
// whose name on Windows includes a domain that no host knows.
func TestLoginFor(t *testing.T) {
	own, err := sshclient.LoginUser(sshclient.Credentials{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ address, advertised, user, want string }{
		{"ssh://ops@gpu1", "", "ann", "ops@gpu1:22"},
		{"ssh://gpu1:2222", "", "ann", "ann@gpu1:2222"},
		{"ssh://gpu1:2222", "10.0.0.1:22", "ann", "ann@10.0.0.1:22"},
		{"ssh://gpu1", "", "", own + "@gpu1:22"},
	} {
		e := &Engine{settings: engine.Settings{SSH: sshclient.Credentials{User: c.user}}}
		got := e.loginFor(domain.Host{Address: c.address, AdvertiseAddress: c.advertised})
		if got != c.want {
			t.Errorf("%q: logs in to %s, want %s", c, got, c.want)
		}
	}
}
