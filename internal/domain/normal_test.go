package domain

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestNormal(t *testing.T) {
	none, minute := Duration(0), Duration(time.Minute)
	written := MemberSpec{
		Command: []string{}, Args: []string{"b", "a"}, Env: map[string]string{},
		Mounts:      []Mount{{Source: "/b", Target: "/b"}, {Type: MountTmpfs, Target: "/a"}},
		Files:       []File{{Name: "b"}, {Name: "a"}},
		Restart:     RestartRule{Final: ExitCodes{}},
		Placement:   Placement{Labels: map[string]string{}, Hosts: []string{"h2", "h1"}},
		Deviations:  []string{},
		GracePeriod: minute,
		Container: Container{
			Ulimits:     map[string]Ulimit{},
			HealthCheck: &HealthCheck{Command: []string{}, Interval: &none, Timeout: &minute},
			Logging:     &Logging{Driver: "local", Options: map[string]string{}},
			Ports: map[string]PublishedPort{
				"a": {Target: 1, Published: 2}, "b": {Target: 3, Published: 4, Protocol: "udp"},
			},
			Configs: map[string]ConfigFile{"a": {Target: "/a"}, "b": {Target: "/b", Mode: 0o600}},
			Secrets: map[string]SecretFile{"a": {Version: "1"}, "b": {Version: "1", Target: "/b", Mode: 0o600}},
		},
	}
	want := MemberSpec{
		Args:        []string{"b", "a"},
		Mounts:      []Mount{{Type: MountTmpfs, Target: "/a"}, {Type: MountBind, Source: "/b", Target: "/b"}},
		Files:       []File{{Name: "a"}, {Name: "b"}},
		Placement:   Placement{Strategy: Spread, Hosts: []string{"h1", "h2"}},
		GracePeriod: minute,
		Container: Container{
			PullPolicy:  PullIfNotPresent,
			HealthCheck: &HealthCheck{Timeout: &minute},
			Logging:     &Logging{Driver: "local"},
			Ports: map[string]PublishedPort{
				"a": {Target: 1, Published: 2, Protocol: "tcp"}, "b": {Target: 3, Published: 4, Protocol: "udp"},
			},
			Configs: map[string]ConfigFile{"a": {Target: "/a", Mode: 0o444}, "b": {Target: "/b", Mode: 0o600}},
			Secrets: map[string]SecretFile{
				"a": {Version: "1", Target: "/run/secrets/a", Mode: 0o400},
				"b": {Version: "1", Target: "/b", Mode: 0o600},
			},
		},
	}
	before, err := json.Marshal(written)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, written.Normal()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, want.Normal()); diff != "" {
		t.Errorf("what is normal is changed (-want +got):\n%s", diff)
	}
	if after, err := json.Marshal(written); err != nil || string(after) != string(before) {
		t.Errorf("it is changed in place: %s, %v", after, err)
	}
}
