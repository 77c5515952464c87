package domain_test

import (
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

func TestMemberAddress(t *testing.T) {
	for _, c := range []struct{ address, advertise, want string }{
		{"127.0.0.1", "", "127.0.0.1"},
		{"::1", "", "::1"},
		{"ssh://gpu1", "", "gpu1"},
		{"ssh://ops@gpu1:2222", "", "gpu1"},
		{"ssh://ops@gpu1/", "", "gpu1"},
		{"ssh://ops@[fd00::1]:2222", "", "fd00::1"},
		{"ssh://[fd00::1]", "", "fd00::1"},
		{"ssh://ops@bastion:2222", "10.0.0.3", "10.0.0.3"},
		{"ssh://ops@bastion:2222", "10.0.0.3:22", "10.0.0.3"},
		{"ssh://ops@bastion:2222", "fd00::3", "fd00::3"},
		{"", "", ""},
	} {
		if got := (domain.Host{Address: c.address, AdvertiseAddress: c.advertise}).MemberAddress(); got != c.want {
			t.Errorf("address %q, advertise address %q: %q, not %q", c.address, c.advertise, got, c.want)
		}
	}
}
