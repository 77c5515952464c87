package process_test

import (
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/process"
)

func TestCompleteRefusesWhatIsForSwarms(t *testing.T) {
	e, err := process.Open("lab", engine.Settings{StateDir: t.TempDir()}, process.Program{})
	if err != nil {
		t.Fatal(err)
	}
	host := func(h domain.Host) domain.Cluster {
		return domain.Cluster{Name: "lab", Engine: "process", Hosts: map[string]domain.Host{"a": h}}
	}
	for path, test := range map[string]struct {
		cluster domain.Cluster
		value   string
	}{
		"endpoint":                     {domain.Cluster{Name: "lab", Endpoint: "ssh://gpu1"}, `"ssh://gpu1"`},
		"agent.image":                  {domain.Cluster{Name: "lab", Agent: domain.Agent{Image: "ops/trainyard:1"}}, `"ops/trainyard:1"`},
		"network":                      {domain.Cluster{Name: "lab", Network: &domain.Network{}}, `"{}"`},
		"network of a subnet":          {domain.Cluster{Name: "lab", Network: &domain.Network{Subnet: "10.0.0.0/20"}}, `"10.0.0.0/20"`},
		`hosts["a"].role`:              {host(domain.Host{Role: domain.HostManager}), `"manager"`},
		`hosts["a"].availability`:      {host(domain.Host{Availability: domain.HostDrained}), `"drain"`},
		`hosts["a"].advertise_address`: {host(domain.Host{AdvertiseAddress: "eth0"}), `"eth0"`},
	} {
		_, problems, err := e.Complete(t.Context(), test.cluster)
		if err != nil {
			t.Fatal(err)
		}
		if len(problems) != 1 || !strings.HasPrefix(path, problems[0].Path.String()) || !strings.Contains(problems[0].Detail, test.value) || !strings.Contains(problems[0].Detail, `"swarm"`) {
			t.Errorf("%s: got %v, want one problem there that names %s", path, problems, test.value)
		}
	}
	if _, problems, err := e.Complete(t.Context(), host(domain.Host{})); err != nil || len(problems) > 0 {
		t.Errorf("a plain host: %v, %v", problems, err)
	}
}

func TestPreflightOfContainers(t *testing.T) {
	e, err := process.Open("lab", engine.Settings{StateDir: t.TempDir()}, process.Program{})
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		change  func(s *domain.MemberSpec)
		path    string
		warning bool
	}{
		"settings": {func(s *domain.MemberSpec) { s.Container.Init = true }, `roles["worker"].container`, true},
		"a port":   {func(s *domain.MemberSpec) { s.Container.Ports = map[string]domain.PublishedPort{"a": {}} }, `roles["worker"].container`, true},
		"a config": {func(s *domain.MemberSpec) { s.Container.Configs = map[string]domain.ConfigFile{"a": {}} }, `roles["worker"].container.configs`, false},
		"a secret": {func(s *domain.MemberSpec) { s.Container.Secrets = map[string]domain.SecretFile{"a": {}} }, `roles["worker"].container.secrets`, false},
		"a tmpfs":  {func(s *domain.MemberSpec) { s.Mounts = []domain.Mount{{Type: domain.MountTmpfs, Target: "/a"}} }, `roles["worker"].mounts[0].type`, false},
		"a bind": {func(s *domain.MemberSpec) {
			s.Mounts = []domain.Mount{{Type: domain.MountBind, Source: "/a", Target: "/a"}}
		}, "", false},
		"elsewhere": {func(s *domain.MemberSpec) { s.Mounts = []domain.Mount{{Source: "/a", Target: "/b"}} }, `roles["worker"].mounts[0]`, false},
		"nothing":   {func(*domain.MemberSpec) {}, "", false},
	} {
		spec := domain.MemberSpec{Name: "g-worker-0", Role: "worker", Host: "local", WorkingDir: t.TempDir(), Command: []string{"/bin/true"}}
		test.change(&spec)
		problems, err := e.Preflight(t.Context(), []domain.MemberSpec{spec})
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case test.path == "" && len(problems) > 0:
			t.Errorf("%s: got %v", name, problems)
		case test.path != "" && (len(problems) != 1 || problems[0].Path.String() != test.path || problems[0].Warning != test.warning):
			t.Errorf("%s: got %v, want one problem at %s (a warning: %t)", name, problems, test.path, test.warning)
		}
	}
}
