package systemd

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/relay"
)

// TestLogins: a host gets the stored credentials for its members' images, once per image. After a group has changed its
// images, those for the current ones are kept.
func TestLogins(t *testing.T) {
	const one, other = "one.example.com/trainer:1", "other.example.com:5000/trainer@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	member := func(group, image string) domain.MemberSpec { return domain.MemberSpec{Group: group, Image: image} }
	all := groupLogins{
		"job": {"one.example.com": "to one", "other.example.com:5000": "to other", "docker.io": "to hub"}, "open": {},
	}
	got := all.of([]domain.MemberSpec{
		member("job", one), member("job", one), member("job", other), member("job", "python:3"), member("job", ""),
		member("job", "third.example.com/x"), member("job", other[len(other)-len("sha256:")-64:]),
		member("open", one), member("unknown", one),
	})
	want := []relay.RegistryLogin{
		{Group: "job", Image: one, Auth: "to one"}, {Group: "job", Image: other, Auth: "to other"},
		{Group: "job", Image: "python:3", Auth: "to hub"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a host gets (-want +got):\n%s", diff)
	}
	staging := relay.Staging{Registries: got}
	for spec, want := range map[string]string{one: "to one", "python:3": "to hub", "python:4": ""} {
		if got := staging.RegistryLoginOf(member("job", spec)); got != want {
			t.Errorf("for %s it finds %q", spec, got)
		}
	}
	if got := staging.RegistryLoginOf(member("open", one)); got != "" {
		t.Errorf("a member of another group finds %q", got)
	}

	role := func(image string, policy domain.PullPolicy) domain.Role {
		return domain.Role{Template: domain.Template{Image: image, Container: &domain.Container{PullPolicy: policy}}}
	}
	for name, c := range map[string]struct {
		declared *domain.Group
		left     logins
	}{
		"none": {nil, logins{}},
		"roles": {
			&domain.Group{Roles: map[string]domain.Role{"a": role(one, ""), "b": role("python:3", domain.PullAlways)}},
			logins{"one.example.com": "to one", "docker.io": "to hub"},
		},
		"never": {&domain.Group{Roles: map[string]domain.Role{"a": role(one, domain.PullNever)}}, logins{}},
		"of a sweep": {
			&domain.Group{Template: domain.Template{Image: other}}, logins{"other.example.com:5000": "to other"},
		},
	} {
		stored := logins{"one.example.com": "to one", "other.example.com:5000": "to other", "docker.io": "to hub"}
		stored.keep(c.declared)
		if diff := cmp.Diff(c.left, stored); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", name, diff)
		}
	}
}
