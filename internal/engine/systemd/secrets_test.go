package systemd

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// TestSecrets: a version of a role's secret keeps its first value until the group no longer declares it.
func TestSecrets(t *testing.T) {
	member := func(role, version, value string) domain.MemberSpec {
		spec := domain.MemberSpec{Group: "job", Role: role, Name: "job-" + role + "-0"}
		spec.Container.Secrets = map[string]domain.SecretFile{"token": {Version: version}}
		if value != "" {
			spec.Secrets = domain.SecretValues{role: {"token": []byte(value)}}
		}
		return spec
	}
	contents := func(s secrets) map[string]string {
		text := map[string]string{}
		for id, secret := range s {
			text[id] = string(secret.Content)
		}
		return text
	}
	s := secrets{}
	for _, step := range []struct {
		specs        []domain.MemberSpec
		want, stored map[string]string
	}{
		{[]domain.MemberSpec{member("worker", "1", ""), member("ps", "1", "a")}, nil, nil},
		{
			[]domain.MemberSpec{member("worker", "1", "a"), member("worker", "1", "a")},
			map[string]string{"worker/token/1": "a"}, map[string]string{"worker/token/1": "a"},
		},
		{
			[]domain.MemberSpec{member("worker", "1", "other"), member("worker", "2", "b")},
			map[string]string{"worker/token/1": "a", "worker/token/2": "b"},
			map[string]string{"worker/token/1": "a", "worker/token/2": "b"},
		},
		{
			[]domain.MemberSpec{member("worker", "2", "")},
			map[string]string{"worker/token/2": "b"}, map[string]string{"worker/token/1": "a", "worker/token/2": "b"},
		},
	} {
		if step.want == nil {
			if needed, err := maps.Clone(s).provide(step.specs); err == nil {
				t.Errorf("%v: got %v, want an error", step.specs, contents(needed))
			}
			continue
		}
		needed, err := s.provide(step.specs)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, contents(needed)); diff != "" {
			t.Errorf("needed (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(step.stored, contents(s)); diff != "" {
			t.Errorf("stored (-want +got):\n%s", diff)
		}
		if of := secretsOf(map[string]secrets{"job": needed}, step.specs); len(of) != len(step.want) {
			t.Errorf("a host gets %v, want each once", of)
		}
	}
	declared := &domain.Group{Roles: map[string]domain.Role{
		"worker": {Template: domain.Template{
			Container: &domain.Container{Secrets: map[string]domain.SecretFile{"token": {Version: "2"}}},
		}},
	}}
	s.keep(declared)
	if left := slices.Collect(maps.Keys(s)); !slices.Equal(left, []string{"worker/token/2"}) {
		t.Errorf("left are %v", left)
	}
	if s.keep(nil); len(s) > 0 {
		t.Errorf("of a group that ended there is left %v", s)
	}
}
