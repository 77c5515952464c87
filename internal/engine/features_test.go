package engine_test

import (
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

var (
	plain = engine.Traits{Name: "plain"}
	able  = engine.Traits{Name: "able", Supports: engine.Features{
		Endpoint: true, Roles: true, Availability: true, AdvertiseAddress: true, Socket: true, Network: true,
		Containers: true,
	}}
	units = engine.Traits{Name: "units", Supports: engine.Features{UnitSettings: true}}
	bare  = engine.Traits{
		Name: "bare", Supports: engine.Features{UnitSettings: true, Images: true},
		FilesDir: func(member string) string { return "/files/" + member },
	}
)

// TestCheckCluster: an unsupported attribute is refused in one sentence, at its path and with its value.
func TestCheckCluster(t *testing.T) {
	host := func(h domain.Host) domain.Cluster { return domain.Cluster{Hosts: map[string]domain.Host{"a": h}} }
	for path, test := range map[string]struct {
		cluster domain.Cluster
		says    string
	}{
		"endpoint": {domain.Cluster{Endpoint: "ssh://gpu1"}, `endpoint = "ssh://gpu1"`},
		"agent.image": {
			domain.Cluster{Agent: domain.Agent{Image: "ops/trainyard:1"}}, `image = "ops/trainyard:1"`,
		},
		"network":                      {domain.Cluster{Network: &domain.Network{}}, "network"},
		`hosts["a"].role`:              {host(domain.Host{Role: domain.HostManager}), `role = "manager"`},
		`hosts["a"].availability`:      {host(domain.Host{Availability: domain.HostDrained}), `availability = "drain"`},
		`hosts["a"].advertise_address`: {host(domain.Host{AdvertiseAddress: "eth0"}), `advertise_address = "eth0"`},
		`hosts["a"].socket`:            {host(domain.Host{Socket: "/run/docker.sock"}), `socket = "/run/docker.sock"`},
	} {
		problems := plain.CheckCluster(test.cluster)
		if want := `the engine "plain" does not support ` + test.says + ": omit it"; len(problems) != 1 ||
			problems[0].Path.String() != path || !strings.HasPrefix(problems[0].Detail, want) {
			t.Errorf("%s: got %v, want one problem there that says %q", path, problems, want)
		}
		if problems := able.CheckCluster(test.cluster); len(problems) > 0 {
			t.Errorf("%s, where it is supported: %v", path, problems)
		}
	}
	if problems := plain.CheckCluster(host(domain.Host{Address: "10.0.0.1"})); len(problems) > 0 {
		t.Errorf("a plain host: %v", problems)
	}
}

// TestNoMetricsPort: an engine that can't set the port says why, and what to do.
func TestNoMetricsPort(t *testing.T) {
	cluster := domain.Cluster{Agent: domain.Agent{MetricsPort: 9465}}
	if problems := plain.CheckCluster(cluster); len(problems) > 0 {
		t.Errorf("where it is supported: %v", problems)
	}
	traits := engine.Traits{Name: "swarm", NoMetricsPort: "they answer elsewhere. Omit it"}
	const want = `the engine "swarm" does not support metrics_port = 9465: they answer elsewhere. Omit it`
	if problems := traits.CheckCluster(cluster); len(problems) != 1 ||
		problems[0].Path.String() != "agent.metrics_port" || problems[0].Detail != want {
		t.Errorf("got %v, want one that says %q", problems, want)
	}
	if problems := traits.CheckCluster(domain.Cluster{}); len(problems) > 0 {
		t.Errorf("without a port: %v", problems)
	}
}

// TestCheckMember: without containers, settings that a member needs are refused, and those without effect are warnings.
func TestCheckMember(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(s *domain.MemberSpec)
		path    string
		warning bool
	}{
		"an image":   {func(s *domain.MemberSpec) { s.Image = "trainer:1" }, `roles["worker"].image`, true},
		"no command": {func(s *domain.MemberSpec) { s.Command = nil }, `roles["worker"].command`, false},
		"settings":   {func(s *domain.MemberSpec) { s.Container.Init = true }, `roles["worker"].container`, true},
		"a port": {
			func(s *domain.MemberSpec) { s.Container.Ports = map[string]domain.PublishedPort{"a": {}} },
			`roles["worker"].container`, true,
		},
		"a config": {func(s *domain.MemberSpec) {
			s.Container.Configs = map[string]domain.ConfigFile{"a": {Target: "/a"}}
		}, `roles["worker"].container.configs`, false},
		"a secret": {
			func(s *domain.MemberSpec) { s.Container.Secrets = map[string]domain.SecretFile{"a": {}} },
			`roles["worker"].container.secrets`, false,
		},
		"a tmpfs": {
			func(s *domain.MemberSpec) { s.Mounts = []domain.Mount{{Type: domain.MountTmpfs, Target: "/a"}} },
			`roles["worker"].mounts[0].type`, false,
		},
		"a bind": {func(s *domain.MemberSpec) {
			s.Mounts = []domain.Mount{{Type: domain.MountBind, Source: "/a", Target: "/a"}}
		}, "", false},
		"read-only": {func(s *domain.MemberSpec) {
			s.Mounts = []domain.Mount{{Source: "/a", Target: "/a", ReadOnly: true}}
		}, `roles["worker"].mounts[0].read_only`, true},
		"elsewhere": {
			func(s *domain.MemberSpec) { s.Mounts = []domain.Mount{{Source: "/a", Target: "/b"}} },
			`roles["worker"].mounts[0]`, false,
		},
		"nothing": {func(*domain.MemberSpec) {}, "", false},
	} {
		spec := domain.MemberSpec{Role: "worker", Command: []string{"/bin/true"}}
		test.change(&spec)
		problems := plain.CheckMember(spec)
		switch {
		case test.path == "" && len(problems) > 0:
			t.Errorf("%s: got %v", name, problems)
		case test.path != "" &&
			(len(problems) != 1 || problems[0].Path.String() != test.path || problems[0].Warning != test.warning):
			t.Errorf("%s: got %v, want one problem at %s (a warning: %t)", name, problems, test.path, test.warning)
		}
		if problems := able.CheckMember(spec); len(problems) > 0 {
			t.Errorf("%s, where there are containers: %v", name, problems)
		}
	}
}

// TestUnitSettings: some of a container's settings also apply to plain programs if these are units.
func TestUnitSettings(t *testing.T) {
	spec := domain.MemberSpec{Role: "worker", Command: []string{"/bin/true"}}
	spec.Container = domain.Container{
		User: "ops", StopSignal: "SIGINT", Ulimits: map[string]domain.Ulimit{"memlock": {Soft: -1, Hard: -1}},
	}
	if problems := units.CheckMember(spec); len(problems) > 0 {
		t.Errorf("got %v", problems)
	}
	spec.Container.ShmSizeMiB = 64
	if problems := units.CheckMember(spec); len(problems) != 1 ||
		!strings.Contains(problems[0].Detail, "no effect, except user, stop_signal, ulimits, configs and secrets") {
		t.Errorf("got %v", problems)
	}
}

// TestCredentials: configs and secrets are files in a container; without one, files of one folder.
func TestCredentials(t *testing.T) {
	const role = `roles["worker"].`
	for name, test := range map[string]struct {
		container domain.Container
		env       map[string]string
		// units and containers are the paths of the expected problem.
		units, containers string
	}{
		"by names": {
			domain.Container{
				Configs: map[string]domain.ConfigFile{"a": {}}, Secrets: map[string]domain.SecretFile{"b": {}},
			}, nil,
			"", role + `container.configs["a"].target`,
		},
		"config's target": {
			domain.Container{Configs: map[string]domain.ConfigFile{"a": {Target: "/etc/a"}}}, nil,
			role + `container.configs["a"].target`, "",
		},
		"secret's target": {
			domain.Container{Secrets: map[string]domain.SecretFile{"a": {Target: "/etc/a"}}}, nil,
			role + `container.secrets["a"].target`, "",
		},
		"one name": {
			domain.Container{
				Configs: map[string]domain.ConfigFile{"a": {}}, Secrets: map[string]domain.SecretFile{"a": {}},
			}, nil,
			role + `container.secrets["a"]`, role + `container.configs["a"].target`,
		},
		"own variable": {
			domain.Container{Secrets: map[string]domain.SecretFile{"a": {}}},
			map[string]string{"CREDENTIALS_DIRECTORY": "/a"},
			role + `env["CREDENTIALS_DIRECTORY"]`, "",
		},
		"own variable without any": {domain.Container{}, map[string]string{"CREDENTIALS_DIRECTORY": "/a"}, "", ""},
	} {
		spec := domain.MemberSpec{
			Role: "worker", Command: []string{"/bin/true"}, Container: test.container, Env: test.env,
		}
		for _, engine := range []struct {
			engine.Traits
			want string
		}{{units, test.units}, {able, test.containers}} {
			problems := engine.CheckMember(spec)
			if engine.want == "" && len(problems) > 0 ||
				engine.want != "" &&
					(len(problems) != 1 || problems[0].Path.String() != engine.want || problems[0].Warning) {
				t.Errorf("%s, engine %s: got %v, want a problem at %q", name, engine.Name, problems, engine.want)
			}
		}
	}
}

// TestImages: if images run beside plain programs, the member's image decides what it can have, and where it finds its
// files.
func TestImages(t *testing.T) {
	const role = `roles["worker"].`
	for name, test := range map[string]struct {
		container  domain.Container
		mount      domain.Mount
		workingDir string
		// image and plain are the paths of the expected problem with an image and without one.
		image, plain string
	}{
		"nothing": {},
		"its port published": {
			container: domain.Container{Ports: map[string]domain.PublishedPort{"a": {Target: 80, Published: 80}}},
			plain:     role + "container",
		},
		"another one": {
			container: domain.Container{Ports: map[string]domain.PublishedPort{"a": {Target: 80, Published: 8080}}},
			image:     role + `container.ports["a"].published`, plain: role + "container",
		},
		"a config by its name": {
			container: domain.Container{Configs: map[string]domain.ConfigFile{"a": {}}},
			image:     role + `container.configs["a"].target`,
		},
		"a config somewhere": {
			container: domain.Container{Configs: map[string]domain.ConfigFile{"a": {Target: "/a"}}},
			plain:     role + `container.configs["a"].target`,
		},
		"shared memory":          {container: domain.Container{ShmSizeMiB: 64}, plain: role + "container"},
		"a mount from elsewhere": {mount: domain.Mount{Source: "/a", Target: "/b"}, plain: role + "mounts[0]"},
		"a volume": {
			mount: domain.Mount{Type: domain.MountVolume, Source: "data", Target: "/b"}, plain: role + "mounts[0].type",
		},
		"a folder in the image": {workingDir: "app", image: role + "working_dir"},
	} {
		for image, want := range map[string]string{"trainer:1": test.image, "": test.plain} {
			spec := domain.MemberSpec{
				Role: "worker", Image: image, Command: []string{"/bin/true"}, Container: test.container,
				WorkingDir: test.workingDir,
			}
			if test.mount.Target != "" {
				spec.Mounts = []domain.Mount{test.mount}
			}
			problems := bare.CheckMember(spec)
			if want == "" && len(problems) > 0 ||
				want != "" && (len(problems) != 1 || problems[0].Path.String() != want) {
				t.Errorf("%s, image %q: got %v, want a problem at %q", name, image, problems, want)
			}
		}
	}
	without := domain.MemberSpec{Role: "worker", Image: "trainer:1"}
	if problems := bare.CheckMember(without); len(problems) > 0 {
		t.Errorf("an image without a command: %v", problems)
	}
	published := domain.MemberSpec{
		Role: "worker", Image: "trainer:1",
		Container: domain.Container{Ports: map[string]domain.PublishedPort{"a": {Target: 80, Published: 8080}}},
	}
	if problems := bare.CheckMember(published); !strings.Contains(problems[0].Detail,
		"have the member listen on 8080, and set target = 8080") {
		t.Errorf("got %v", problems)
	}
	if problems := able.CheckMember(published); len(problems) > 0 {
		t.Errorf("a port that is published as another, where containers have networks of their own: %v", problems)
	}
	plain := domain.MemberSpec{
		Role: "worker", Command: []string{"/bin/true"}, Mounts: []domain.Mount{{Source: "/a", Target: "/b"}},
		Container: domain.Container{Init: true},
	}
	problems := bare.CheckMember(plain)
	for i, says := range []string{
		"as members without an image see the files of their hosts",
		`role "worker" has no image, and so no container: these settings have no effect, except user`,
	} {
		if len(problems) != 2 || !strings.Contains(problems[i].Detail, says) {
			t.Errorf("got %v, want what says %q", problems, says)
		}
	}
	if files := bare.FilesOf("m", "trainer:1"); files != domain.FilesDir {
		t.Errorf("a member with an image finds its files in %q", files)
	}
	if files := bare.FilesOf("m", ""); files != "/files/m" {
		t.Errorf("a member without an image finds its files in %q", files)
	}
	if files := able.FilesOf("m", ""); files != domain.FilesDir {
		t.Errorf("a member of an engine of containers finds its files in %q", files)
	}
}
