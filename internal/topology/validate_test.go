package topology

import (
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

func contains(text string, parts ...string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

func TestValidateAccepts(t *testing.T) {
	for name, change := range map[string]func(g *domain.Group){
		"the plain group": func(*domain.Group) {},
		"defaults written out": func(g *domain.Group) {
			g.RestartScope, g.WaitFor = domain.ScopeMember, domain.WaitRunning
			g.Completion.When = domain.WhenChief
		},
		"an image without a command": func(g *domain.Group) { g.Template = domain.Template{Image: "trainer"} },
		"a command in each role": func(g *domain.Group) {
			g.Command = nil
			for name, r := range g.Roles {
				r.Command = []string{"train"}
				g.Roles[name] = r
			}
		},
		"the last port":        edit("worker", func(r *domain.Role) { r.Port = new(65534) }),
		"an unmanaged count":   edit("worker", func(r *domain.Role) { r.Replicas = nil }),
		"no bound on attempts": edit("worker", func(r *domain.Role) { r.Restart.MaxAttempts = new(0) }),
		"templates": func(g *domain.Group) {
			g.Args = []string{
				`{{ address "ps" 0 }} {{ addresses "worker" }} {{ replicas "ps" }} {{ hostname .Address }} {{ port (address "ps" 0) }}`,
				`{{ .Index }} {{ .Name }} {{ .Role }} {{ .Group }} {{ .Cluster }} {{ .Host }} {{ .Address }} {{ .Port }}`,
				`{{ "{{" }} not a template }}`,
			}
		},
		"an update": edit("worker", func(r *domain.Role) {
			r.Update = domain.Update{Parallelism: 2, Delay: new(domain.Duration(0)), OnFailure: domain.UpdateRollback}
		}),
		"a folder beside Trainyard's": func(g *domain.Group) {
			g.Mounts = []domain.Mount{{Source: "/a", Target: "/run/trainyards"}}
		},
		"a mount at the shared memory": func(g *domain.Group) {
			g.Mounts = []domain.Mount{{Type: domain.MountTmpfs, Target: "/dev/shm"}}
		},
		"configs that fit": func(g *domain.Group) {
			g.Container = &domain.Container{
				Configs: map[string]domain.ConfigFile{"a": {Target: "/a", Content: strings.Repeat("x", 999_999)}},
			}
		},
		"waiting for a chief": func(g *domain.Group) { g.WaitFor = domain.WaitCompleted },
	} {
		t.Run(name, func(t *testing.T) {
			g := group("tensorflow", map[string]int{"ps": 1, "worker": 2})
			change(&g)
			for _, p := range Validate(g) {
				t.Errorf("problem: %v", p)
			}
		})
	}
}

// TestValidateRejects introduces one fault at a time in a group of 1 ps and 2 workers, and expects exactly one problem
// there.
func TestValidateRejects(t *testing.T) {
	worker := func(change func(r *domain.Role)) func(g *domain.Group) { return edit("worker", change) }
	template := func(text string) func(g *domain.Group) {
		return worker(func(r *domain.Role) { r.Env = map[string]string{"X": text} })
	}
	for name, test := range map[string]struct {
		change func(g *domain.Group)
		path   string
		says   []string
	}{
		"unknown framework": {
			func(g *domain.Group) { g.Framework = "caffe" }, `framework`, []string{`"caffe"`, `"tensorflow_v1"`},
		},
		"bad name":   {func(g *domain.Group) { g.Name = "MNIST" }, `name`, []string{`"MNIST"`, "lower-case"}},
		"no cluster": {func(g *domain.Group) { g.Cluster = "" }, `cluster.name`, []string{"cluster"}},
		"bad role name": {func(g *domain.Group) {
			*g = group("none", map[string]int{"my_role": 1})
		}, `roles["my_role"]`, []string{`"my_role"`}},
		"names too long together": {func(g *domain.Group) {
			*g = group("none", map[string]int{strings.Repeat("r", 40): 1})
			g.Name = strings.Repeat("g", 20)
		}, `roles["` + strings.Repeat("r", 40) + `"]`, []string{"66", "63", "shorten one by 3"}},
		"unknown role": {func(g *domain.Group) { *g = group("pytorch", map[string]int{"ps": 1, "worker": 1}) },
			`roles["ps"]`,
			[]string{`"ps"`, `"master", "worker"`, `"none"`}},
		"missing role": {
			func(g *domain.Group) { *g = group("tensorflow_v1", map[string]int{"worker": 1}) }, `roles`,
			[]string{`"ps"`},
		},
		"missing one of": {
			func(g *domain.Group) { *g = group("pytorch", map[string]int{"master": 0, "worker": 0}) }, `roles`,
			[]string{"at least one"},
		},
		"too many masters": {
			func(g *domain.Group) { *g = group("spark", map[string]int{"master": 2}) }, `roles["master"].replicas`,
			[]string{"2", "at most 1"},
		},
		"no roles": {func(g *domain.Group) { g.Roles = nil }, `roles`, []string{"at least one"}},
		"negative replicas": {
			worker(func(r *domain.Role) { r.Replicas = new(-1) }), `roles["worker"].replicas`, []string{"-1"},
		},
		"too many replicas": {
			worker(func(r *domain.Role) { r.Replicas = new(10001) }), `roles["worker"].replicas`,
			[]string{"10001", "10000"},
		},
		"port 0": {
			worker(func(r *domain.Role) { r.Port = new(0) }), `roles["worker"].port`, []string{"0", "65535"},
		},
		"port 65536": {
			worker(func(r *domain.Role) { r.Port = new(65536) }), `roles["worker"].port`, []string{"65536", "65535"},
		},
		"negative CPUs": {
			worker(func(r *domain.Role) { r.Resources.CPUs = -1 }), `roles["worker"].resources.cpus`, []string{"-1"},
		},
		"negative memory": {
			worker(func(r *domain.Role) { r.Resources.MemoryMiB = -1 }), `roles["worker"].resources.memory_mib`,
			[]string{"-1"},
		},
		"strategy": {
			worker(func(r *domain.Role) { r.Placement.Strategy = "x" }), `roles["worker"].placement.strategy`,
			[]string{`"spread", "pack", "one_per_host"`},
		},
		"label with a value": {
			worker(func(r *domain.Role) { r.Placement.SpreadBy = "rack=a" }), `roles["worker"].placement.spread_by`,
			[]string{`only the name: "rack"`, `labels = { rack = "a" }`},
		},
		"label of a node": {
			worker(func(r *domain.Role) { r.Placement.SpreadBy = "node.labels.rack" }),
			`roles["worker"].placement.spread_by`, []string{`only the name: "rack"`},
		},
		"label with a space": {
			worker(func(r *domain.Role) { r.Placement.SpreadBy = "rack " }), `roles["worker"].placement.spread_by`,
			[]string{`"rack "`, "spaces"},
		},
		"label with a NUL": {
			worker(func(r *domain.Role) { r.Placement.SpreadBy = "ra\x00ck" }), `roles["worker"].placement.spread_by`,
			[]string{`"ra\x00ck"`},
		},
		"condition": {
			worker(func(r *domain.Role) { r.Restart.Condition = "x" }), `roles["worker"].restart.condition`,
			[]string{`"never", "on_failure", "always"`},
		},
		"negative attempts": {
			worker(func(r *domain.Role) { r.Restart.MaxAttempts = new(-1) }), `roles["worker"].restart.max_attempts`,
			[]string{"-1"},
		},
		"negative delay": {
			worker(func(r *domain.Role) { r.Restart.Delay = new(domain.Duration(-1)) }),
			`roles["worker"].restart.delay`, []string{"-1ns"},
		},
		"negative parallelism": {
			worker(func(r *domain.Role) { r.Update.Parallelism = -1 }), `roles["worker"].update.parallelism`,
			[]string{"-1"},
		},
		"negative delay of an update": {
			worker(func(r *domain.Role) { r.Update.Delay = new(domain.Duration(-1)) }), `roles["worker"].update.delay`,
			[]string{"-1ns"},
		},
		"unknown reaction": {
			worker(func(r *domain.Role) { r.Update.OnFailure = "stop" }), `roles["worker"].update.on_failure`,
			[]string{`"stop"`, `"pause", "continue", "rollback"`},
		},
		"negative grace": {
			worker(func(r *domain.Role) { r.GracePeriod = new(domain.Duration(-1)) }), `roles["worker"].grace_period`,
			[]string{"-1ns"},
		},
		"effect of scaling": {
			worker(func(r *domain.Role) { r.OnScale = "x" }), `roles["worker"].on_scale`, []string{`"restart", "none"`},
		},
		"working directory": {
			worker(func(r *domain.Role) { r.WorkingDir = "data" }), `roles["worker"].working_dir`,
			[]string{`"data"`, "absolute"},
		},
		"exit code": {
			worker(func(r *domain.Role) {
				r.ExitCodes = &domain.ExitCodeRule{Final: domain.ExitCodes{"1-127", "300"}}
			}),
			`roles["worker"].exit_codes.final[1]`, []string{`"300"`},
		},
		"scope": {
			func(g *domain.Group) { g.RestartScope = "x" }, `restart_scope`, []string{`"member", "group"`},
		},
		"wait for": {
			func(g *domain.Group) { g.WaitFor = "x" }, `wait_for`, []string{`"running", "completed"`},
		},
		"completion": {
			func(g *domain.Group) { g.Completion.When = "x" }, `completion.when`,
			[]string{`"chief", "all", "any", "never"`},
		},
		"negative deadline": {
			func(g *domain.Group) { g.Completion.Deadline = new(domain.Duration(-1)) }, `completion.deadline`,
			[]string{"-1ns"},
		},
		"completion of whom": {
			func(g *domain.Group) { g.Completion.Roles = []string{"worker", "chef"} }, `completion.roles[1]`,
			[]string{`"chef"`, `"ps", "worker"`},
		},
		"scaling what is fixed": {func(g *domain.Group) {
			*g = group("jax", map[string]int{"worker": 2})
			edit("worker", func(r *domain.Role) { r.OnScale = domain.OnScaleNone })(g)
		}, `roles["worker"].on_scale`, []string{`"jax"`, `"none"`, `use "restart"`}},
		"no chief": {func(g *domain.Group) {
			*g = group("none", map[string]int{"a": 1, "b": 1})
			g.Completion.When = domain.WhenChief
		}, `completion.when`, []string{`"chief" or "master" or "worker"`, "completion.roles"}},
		"nobody completes": {func(g *domain.Group) {
			*g = group("spark", map[string]int{"master": 1, "worker": 1})
			g.Completion.When = domain.WhenAll
		}, `completion.when`, []string{`"all"`}},
		"waiting for never": {
			func(g *domain.Group) { g.Completion.When, g.WaitFor = domain.WhenNever, domain.WaitCompleted },
			`wait_for`,
			[]string{"never", `"running"`},
		},
		"waiting for a service": {func(g *domain.Group) {
			*g = group("ray", map[string]int{"head": 1})
			g.WaitFor = domain.WaitCompleted
		}, `wait_for`, []string{"never"}},
		"no command": {func(g *domain.Group) {
			*g = group("none", map[string]int{"a": 1})
			g.Command = nil
		}, `roles["a"].command`, []string{`"a"`, "image"}},
		"empty command": {
			worker(func(r *domain.Role) { r.Command = []string{""} }), `roles["worker"].command[0]`, []string{"empty"},
		},
		"reserved variable": {func(g *domain.Group) { g.Env = map[string]string{"TRAINYARD_X": "1"} },
			`env["TRAINYARD_X"]`, []string{"TRAINYARD_"}},
		"variable of no name": {
			worker(func(r *domain.Role) { r.Env = map[string]string{"": "1"} }), `roles["worker"].env`,
			[]string{"empty"},
		},
		"variable with =": {
			worker(func(r *domain.Role) { r.Env = map[string]string{"A=B": "1"} }), `roles["worker"].env["A=B"]`,
			[]string{`"="`},
		},
		"NUL in a variable": {template("a\x00b"), `roles["worker"].env["X"]`, []string{"NUL"}},
		"variable too long": {
			template(strings.Repeat("x", 128<<10)), `roles["worker"].env["X"]`, []string{"131074", "131071"},
		},
		"argument too long": {
			func(g *domain.Group) { g.Args = []string{strings.Repeat("x", 128<<10)} }, `args[0]`,
			[]string{"131072", "131071"},
		},
		"relative mount": {
			worker(func(r *domain.Role) { r.Mounts = []domain.Mount{{Source: "data", Target: "/data"}} }),
			`roles["worker"].mounts[0].source`, []string{`"data"`, "abspath"},
		},
		"mounts over each other": {func(g *domain.Group) {
			g.Mounts = []domain.Mount{{Source: "/a", Target: "/data"}, {Source: "/b", Target: "/data"}}
		}, `mounts[1].target`, []string{`"/data"`}},

		"template: syntax": {
			template(`{{ address "ps" 0`), `roles["worker"].env["X"]`,
			[]string{"unclosed action", "address ROLE INDEX"},
		},
		"template: no function": {
			template(`{{ place "ps" 0 }}`), `roles["worker"].env["X"]`,
			[]string{`"place" not defined`, "address ROLE INDEX"},
		},
		"template: no field": {
			template(`{{ .Rank }}`), `roles["worker"].env["X"]`, []string{"{{ .Rank }}", ".Index .Name"},
		},
		"template: no role": {
			template(`{{ address "master" 0 }}`), `roles["worker"].env["X"]`,
			[]string{`{{ address "master" 0 }}: there is no role "master"`, "ps (1), worker (2)"},
		},
		"template: no member": {
			template(`{{ address "ps" .Index }}`), `roles["worker"].env["X"]`,
			[]string{`role "ps" has no member 1`, "mnist-worker-1", "0 to 0"},
		},
		"template: negative": {
			template(`{{ address "ps" -1 }}`), `roles["worker"].env["X"]`, []string{`no member -1`},
		},
		"template: wrong type": {
			template(`{{ address "ps" "0" }}`), `roles["worker"].env["X"]`, []string{`expected integer`},
		},
		"template: in the group": {
			func(g *domain.Group) { g.Env = map[string]string{"X": "{{ .Rank }}"} }, `env["X"]`, []string{".Rank"},
		},
		"template: in the command": {
			func(g *domain.Group) { g.Command = []string{"train", "{{ .Rank }}"} }, `command[1]`, []string{".Rank"},
		},
		"template: in a role's args": {
			worker(func(r *domain.Role) { r.Args = []string{"{{ .Rank }}"} }), `roles["worker"].args[0]`,
			[]string{".Rank"},
		},
		"template: endless": {
			template(`{{ range 1000000000 }}x{{ end }}`), `roles["worker"].env["X"]`, []string{"128 KiB"},
		},
		"template: interchangeable": {func(g *domain.Group) {
			*g = group("spark", map[string]int{"master": 1, "worker": 2})
			g.Env = map[string]string{"X": `{{ addresses "worker" }}`}
		}, `env["X"]`, []string{`"worker" are interchangeable`, "master (1)"}},
		"template: role of none": {func(g *domain.Group) {
			*g = group("none", map[string]int{"a": 1, "b": 0})
			g.Env = map[string]string{"X": `{{ address "b" 0 }}`}
		}, `env["X"]`, []string{`role "b" has no members`}},
	} {
		t.Run(name, func(t *testing.T) {
			g := group("tensorflow", map[string]int{"ps": 1, "worker": 2})
			test.change(&g)
			problems := Validate(g)
			if len(problems) != 1 {
				t.Fatalf("%d problems, want 1:\n%v", len(problems), problems.Err())
			}
			p := problems[0]
			if p.Path.String() != test.path || p.Warning {
				t.Errorf("path %s (warning: %v), want an error at %s", p.Path, p.Warning, test.path)
			}
			if !contains(p.Detail, test.says...) {
				t.Errorf("detail %q does not say all of %q", p.Detail, test.says)
			}
		})
	}
}

func TestTemplateErrorsKeepWhatIsAroundTheAction(t *testing.T) {
	g := group("none", map[string]int{"a": 1})
	g.Env = map[string]string{"URL": `redis://:hunter2@{{ address "cache" 0 }}`, "BAD": `hunter2{{ if }}`}
	err := Validate(g).Err()
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error is missing or shows a secret: %v", err)
	}
}
