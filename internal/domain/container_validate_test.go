package domain_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

const id = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestValidateAcceptsImages(t *testing.T) {
	for _, image := range []string{
		"", "trainer", "trainer:1.2", "team/trainer", "registry.example.com:5000/team/trainer:1.2", "trainer@" + id,
		"trainer:1.2@" + id, id, "localhost/a",
	} {
		g := group(map[string]int{"a": 1})
		g.Image = image
		if err := g.Validate().Err(); err != nil {
			t.Errorf("%q: %v", image, err)
		}
	}
}

func TestValidateRejectsImages(t *testing.T) {
	for _, image := range []string{
		"Trainer", "team/Trainer:1", "trainer:", "trainer: 1", "https://registry.example.com/trainer",
		"trainer@sha256:12", "sha256:12", strings.TrimPrefix(id, "sha256:"),
		"sha256:" + strings.ToUpper(strings.TrimPrefix(id, "sha256:")),
	} {
		g := group(map[string]int{"a": 1})
		g.Roles["a"] = domain.Role{Replicas: new(1), Template: domain.Template{Image: image}}
		problems := g.Validate()
		if len(problems) != 1 || problems[0].Path.String() != `roles["a"].image` ||
			!contains(problems[0].Detail, image, "name[:tag]", "sha256:<64 hex digits>") {
			t.Errorf("%q: got %v", image, problems)
		}
	}
}

// fullContainer sets everything there is to set.
func fullContainer() *domain.Container {
	return &domain.Container{
		PullPolicy: domain.PullAlways, User: "trainer:100", Init: true, StopSignal: "SIGRTMIN+3", ShmSizeMiB: 512,
		Ulimits: map[string]domain.Ulimit{
			"memlock": {Soft: -1, Hard: -1}, "nofile": {Soft: 1024, Hard: 4096}, "core": {Soft: 0, Hard: -1},
			"nproc": {Soft: 7, Hard: 7},
		},
		HealthCheck: &domain.HealthCheck{
			Command: []string{"check"}, Interval: new(domain.Duration(time.Second)),
			Timeout:     new(domain.Duration(time.Millisecond)),
			StartPeriod: new(domain.Duration(time.Minute)), Retries: 3,
		},
		Logging: &domain.Logging{Driver: "local", Options: map[string]string{"max-size": "10m"}},
		Ports: map[string]domain.PublishedPort{
			"http": {Target: 80, Published: 8080}, "dns": {Target: 53, Published: 8080, Protocol: "udp"},
		},
		Configs: map[string]domain.ConfigFile{
			"train.yaml": {Content: strings.Repeat("x", 999_999), Target: "/etc/train.yaml", Mode: 0o777},
		},
		Secrets: map[string]domain.SecretFile{
			"hf_token": {Version: "1"}, "other": {Version: "2", Target: "/run/other", Mode: 0o400},
		},
	}
}

func TestValidateAcceptsContainers(t *testing.T) {
	g := group(map[string]int{"ps": 1, "worker": 2})
	g.Container = fullContainer()
	g.Mounts = []domain.Mount{
		{Source: "/data", Target: "/data"},
		{Type: domain.MountBind, Source: "/data", Target: "/data/more", ReadOnly: true},
		{Type: domain.MountVolume, Source: "cache", Target: "/cache"},
		{Type: domain.MountTmpfs, Target: "/tmp", SizeMiB: 64},
	}
	edit("worker", func(r *domain.Role) {
		r.Container = &domain.Container{}
		r.Resources = domain.ResourceRequirements{
			CPUs: 1, MemoryMiB: 64, Limits: domain.Resources{CPUs: 1, MemoryMiB: 128},
		}
	})(&g)
	if err := g.Validate().Err(); err != nil {
		t.Error(err)
	}
}

// TestValidateRejectsContainers introduces one fault at a time, and expects exactly one problem there.
func TestValidateRejectsContainers(t *testing.T) {
	const at = `roles["worker"].container.`
	worker := func(change func(r *domain.Role)) func(g *domain.Group) { return edit("worker", change) }
	own := func(change func(c *domain.Container)) func(g *domain.Group) {
		return worker(func(r *domain.Role) {
			r.Container = fullContainer()
			change(r.Container)
		})
	}
	ulimit := func(name string, soft, hard int64) func(g *domain.Group) {
		return own(func(c *domain.Container) { c.Ulimits = map[string]domain.Ulimit{name: {Soft: soft, Hard: hard}} })
	}
	port := func(p domain.PublishedPort) func(g *domain.Group) {
		return own(func(c *domain.Container) { c.Ports["x"] = p })
	}
	config := func(name string, f domain.ConfigFile) func(g *domain.Group) {
		return own(func(c *domain.Container) { c.Configs = map[string]domain.ConfigFile{name: f} })
	}
	secret := func(name string, f domain.SecretFile) func(g *domain.Group) {
		return own(func(c *domain.Container) { c.Secrets = map[string]domain.SecretFile{name: f} })
	}
	mounts := func(list ...domain.Mount) func(g *domain.Group) {
		return worker(func(r *domain.Role) { r.Mounts = list })
	}
	for name, test := range map[string]struct {
		change func(g *domain.Group)
		path   string
		says   []string
	}{
		"pull policy": {
			own(func(c *domain.Container) { c.PullPolicy = "missing" }), at + "pull_policy",
			[]string{`"missing"`, `"if_not_present", "always", "never"`},
		},
		"user": {
			own(func(c *domain.Container) { c.User = "1000:" }), at + "user", []string{`"1000:"`, `"1000:100"`},
		},
		"signal": {
			own(func(c *domain.Container) { c.StopSignal = "TERM" }), at + "stop_signal",
			[]string{`"TERM"`, `"SIGTERM"`},
		},
		"signal to stop": {
			own(func(c *domain.Container) { c.StopSignal = "SIGSTOP" }), at + "stop_signal", []string{`"SIGSTOP"`},
		},
		"realtime signal": {
			own(func(c *domain.Container) { c.StopSignal = "SIGRTMIN+16" }), at + "stop_signal",
			[]string{`"SIGRTMIN+16"`, "SIGRTMIN+15"},
		},
		"shared memory": {own(func(c *domain.Container) { c.ShmSizeMiB = -1 }), at + "shm_size_mib", []string{"-1"}},

		"ulimit's name":   {ulimit("as", 1, 1), at + `ulimits["as"]`, []string{`"as"`, `"memlock"`}},
		"soft above hard": {ulimit("nofile", 2, 1), at + `ulimits["nofile"].soft`, []string{"2", "1"}},
		"soft unlimited":  {ulimit("nofile", -1, 1), at + `ulimits["nofile"].soft`, []string{"-1"}},
		"negative soft limit": {
			ulimit("nofile", -2, 1), at + `ulimits["nofile"].soft`, []string{"-2", "unlimited"},
		},
		"negative hard limit": {
			ulimit("nofile", 1, -2), at + `ulimits["nofile"].hard`, []string{"-2", "unlimited"},
		},
		"no health command": {
			own(func(c *domain.Container) { c.HealthCheck.Command = nil }), at + "health_check.command",
			[]string{"program"},
		},
		"empty health command": {
			own(func(c *domain.Container) { c.HealthCheck.Command = []string{""} }), at + "health_check.command",
			[]string{"program"},
		},
		"no interval": {
			own(func(c *domain.Container) { c.HealthCheck.Interval = new(domain.Duration(0)) }),
			at + "health_check.interval", []string{"0s", "1ms"},
		},
		"short timeout": {
			own(func(c *domain.Container) { c.HealthCheck.Timeout = new(domain.Duration(999)) }),
			at + "health_check.timeout", []string{"999ns"},
		},
		"negative start": {
			own(func(c *domain.Container) { c.HealthCheck.StartPeriod = new(domain.Duration(-1)) }),
			at + "health_check.start_period", []string{"-1ns"},
		},
		"negative retries": {
			own(func(c *domain.Container) { c.HealthCheck.Retries = -1 }), at + "health_check.retries", []string{"-1"},
		},
		"no log driver": {
			own(func(c *domain.Container) { c.Logging.Driver = "" }), at + "logging.driver", []string{"json-file"},
		},
		"protocol": {
			port(domain.PublishedPort{Target: 1, Published: 1, Protocol: "icmp"}), at + `ports["x"].protocol`,
			[]string{`"tcp", "udp", "sctp"`},
		},
		"target port": {
			port(domain.PublishedPort{Target: 0, Published: 1}), at + `ports["x"].target`, []string{"0", "65535"},
		},
		"published port": {
			port(domain.PublishedPort{Target: 1, Published: 65536}), at + `ports["x"].published`,
			[]string{"65536", "65535"},
		},
		"published twice": {
			port(domain.PublishedPort{Target: 1, Published: 8080, Protocol: "tcp"}), at + `ports["x"].published`,
			[]string{`"http"`, "8080/tcp"},
		},
		"name of a port": {
			own(func(c *domain.Container) { c.Ports[""] = domain.PublishedPort{Target: 1, Published: 1} }),
			at + `ports[""]`, []string{`""`},
		},
		"name of a config": {
			config("a/b", domain.ConfigFile{Content: "x", Target: "/a"}), at + `configs["a/b"]`, []string{`"a/b"`},
		},
		"config at a relative path": {
			config("a", domain.ConfigFile{Content: "x", Target: "a"}), at + `configs["a"].target`,
			[]string{`"a"`, "absolute"},
		},
		"config at the root": {
			config("a", domain.ConfigFile{Content: "x", Target: "/.."}), at + `configs["a"].target`,
			[]string{`"/.."`, "root"},
		},
		"config in Trainyard's folder": {
			config("a", domain.ConfigFile{Content: "x", Target: "/run//trainyard/hostfile"}),
			at + `configs["a"].target`, []string{`"/run//trainyard/hostfile"`, "/run/trainyard", "another folder"},
		},
		"config as Trainyard's folder": {
			config("a", domain.ConfigFile{Content: "x", Target: "/run/trainyard"}), at + `configs["a"].target`,
			[]string{"/run/trainyard"},
		},
		"mount over Trainyard's folder": {
			mounts(domain.Mount{Source: "/a", Target: "/run/trainyard/"}), `roles["worker"].mounts[0].target`,
			[]string{`"/run/trainyard/"`},
		},
		"mount over the shared memory": {func(g *domain.Group) {
			g.Mounts = []domain.Mount{{Type: domain.MountTmpfs, Target: "/dev/shm/"}}
			own(func(c *domain.Container) { c.ShmSizeMiB = 64 })(g)
		}, at + "shm_size_mib", []string{`"/dev/shm"`, "mounts[0].target"}},
		"configs in all": {func(g *domain.Group) {
			own(func(c *domain.Container) {
				c.Configs = map[string]domain.ConfigFile{
					"a": {Target: "/a", Content: strings.Repeat("x", 400_000)},
					"b": {Target: "/b", Content: strings.Repeat("\n", 200_000)},
				}
			})(g)
			g.Container = &domain.Container{
				Configs: map[string]domain.ConfigFile{"c": {Target: "/c", Content: strings.Repeat("x", 200_000)}},
			}
		}, at + "configs", []string{"1000000 bytes in total"}},
		"config's mode": {
			config("a", domain.ConfigFile{Content: "x", Target: "/a", Mode: 0o1777}), at + `configs["a"].mode`,
			[]string{"01777", "0777"},
		},
		"config's size": {
			config("a", domain.ConfigFile{Target: "/a", Content: strings.Repeat("x", 1_000_000)}),
			at + `configs["a"].content`, []string{"1000000"},
		},
		"config without content": {
			config("a", domain.ConfigFile{Target: "/a"}), at + `configs["a"].content`, []string{"leave it out"},
		},
		"name of a secret": {
			secret(strings.Repeat("x", 64), domain.SecretFile{Version: "1"}),
			at + `secrets["` + strings.Repeat("x", 64) + `"]`, []string{"63"},
		},
		"secret's target": {
			secret("a", domain.SecretFile{Version: "1", Target: "a"}), at + `secrets["a"].target`,
			[]string{`"a"`, "absolute"},
		},
		"secret's mode": {
			secret("a", domain.SecretFile{Version: "1", Mode: 0o1000}), at + `secrets["a"].mode`, []string{"01000"},
		},
		"secret's version": {
			secret("a", domain.SecretFile{Version: " "}), at + `secrets["a"].version`, []string{`"1"`},
		},

		"type of mount": {
			mounts(domain.Mount{Type: "nfs", Source: "/a", Target: "/a"}), `roles["worker"].mounts[0].type`,
			[]string{`"nfs"`, `"bind", "volume", "tmpfs"`},
		},
		"mount without source": {
			mounts(domain.Mount{Target: "/a"}), `roles["worker"].mounts[0].source`, []string{`""`, "abspath"},
		},
		"mount's target": {
			mounts(domain.Mount{Source: "/a", Target: "a"}), `roles["worker"].mounts[0].target`,
			[]string{`"a"`, "absolute"},
		},
		"path as a volume": {
			mounts(domain.Mount{Type: domain.MountVolume, Source: "/a", Target: "/a"}),
			`roles["worker"].mounts[0].source`, []string{`"/a"`, `"bind"`},
		},
		"source of a tmpfs": {
			mounts(domain.Mount{Type: domain.MountTmpfs, Source: "/a", Target: "/a"}),
			`roles["worker"].mounts[0].source`, []string{`"/a"`, "leave it out"},
		},
		"negative size": {
			mounts(domain.Mount{Type: domain.MountTmpfs, Target: "/a", SizeMiB: -1}),
			`roles["worker"].mounts[0].size_mib`, []string{"-1"},
		},
		"driver of a bind mount": {
			mounts(domain.Mount{Source: "/a", Target: "/a", Driver: &domain.VolumeDriver{Name: "local"}}),
			`roles["worker"].mounts[0].driver`, []string{`"volume"`},
		},
		"driver without a name": {
			mounts(domain.Mount{
				Type: domain.MountVolume, Source: "data", Target: "/a", Driver: &domain.VolumeDriver{},
			}),
			`roles["worker"].mounts[0].driver.name`, []string{`"local"`},
		},
		"size of a bind mount": {
			mounts(domain.Mount{Source: "/a", Target: "/a", SizeMiB: 1}), `roles["worker"].mounts[0].size_mib`,
			[]string{`"tmpfs"`},
		},
		"the same target": {mounts(domain.Mount{Source: "/a", Target: "/a"}, domain.Mount{Source: "/b", Target: "/a/"}),
			`roles["worker"].mounts[1].target`,
			[]string{`"/a/"`, `roles["worker"].mounts[0].target`}},
		"config over a mount of the group": {func(g *domain.Group) {
			g.Mounts = []domain.Mount{{Source: "/a", Target: "/etc/train.yaml"}}
			own(func(*domain.Container) {})(g)
		}, at + `configs["train.yaml"].target`, []string{"mounts[0].target"}},
		"secret over a config of the group": {func(g *domain.Group) {
			g.Container = &domain.Container{
				Configs: map[string]domain.ConfigFile{"a": {Content: "x", Target: "/run/secrets/b"}},
				Secrets: map[string]domain.SecretFile{"b": {Version: "1"}},
			}
		}, `container.secrets["b"].target`, []string{`container.configs["a"].target`}},

		"CPU limit": {
			worker(func(r *domain.Role) { r.Resources.Limits.CPUs = 0.001 }), `roles["worker"].resources.limits.cpus`,
			[]string{"0.001", "0.01"},
		},
		"negative memory limit": {
			worker(func(r *domain.Role) { r.Resources.Limits.MemoryMiB = -1 }),
			`roles["worker"].resources.limits.memory_mib`, []string{"-1"},
		},
		"CPU limit too low": {worker(func(r *domain.Role) { r.Resources.CPUs, r.Resources.Limits.CPUs = 2, 1.5 }),
			`roles["worker"].resources.limits.cpus`, []string{"1.5", "2"}},
		"memory limit too low": {
			worker(func(r *domain.Role) { r.Resources.MemoryMiB, r.Resources.Limits.MemoryMiB = 64, 63 }),

			`roles["worker"].resources.limits.memory_mib`, []string{"63", "64"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := group(map[string]int{"ps": 1, "worker": 2})
			test.change(&g)
			problems := g.Validate()
			if len(problems) != 1 {
				t.Fatalf("%d problems, want 1:\n%v", len(problems), problems.Err())
			}
			if got := problems[0].Path.String(); got != test.path {
				t.Errorf("path %s, want %s", got, test.path)
			}
			if !contains(problems[0].Detail, test.says...) {
				t.Errorf("detail %q does not say all of %q", problems[0].Detail, test.says)
			}
		})
	}
}

// TestTargetsAreThoseOfTheRole checks that a role's own mounts replace the group's, so that the two do not clash.
func TestTargetsAreThoseOfTheRole(t *testing.T) {
	g := group(map[string]int{"ps": 1, "worker": 2})
	g.Mounts = []domain.Mount{{Source: "/a", Target: "/data"}}
	for name, role := range g.Roles {
		role.Mounts = []domain.Mount{{Source: "/b", Target: "/data"}}
		g.Roles[name] = role
	}
	if err := g.Validate().Err(); err != nil {
		t.Error(err)
	}
}

// group returns a group with these numbers of members by role.
func group(counts map[string]int) domain.Group {
	g := domain.Group{
		Cluster: "lab", Name: "mnist", Framework: "none", Template: domain.Template{Command: []string{"train"}},
		Roles: map[string]domain.Role{},
	}
	for name, n := range counts {
		g.Roles[name] = domain.Role{Replicas: &n}
	}
	return g
}

// contains reports whether a text has all parts.
func contains(text string, parts ...string) bool {
	return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) })
}

// edit returns a function that changes a role of a group.
func edit(role string, change func(r *domain.Role)) func(g *domain.Group) {
	return func(g *domain.Group) {
		r := g.Roles[role]
		change(&r)
		g.Roles[role] = r
	}
}
