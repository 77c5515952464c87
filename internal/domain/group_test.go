package domain

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTemplateOver(t *testing.T) {
	defaults := Template{
		Image: "trainer:1", Command: []string{"train"}, Args: []string{"-v"},
		Env:        map[string]string{"A": "1", "B": "2"},
		WorkingDir: "/srv", Mounts: []Mount{{Source: "/data", Target: "/data"}},
	}
	with := func(change func(t *Template)) Template {
		want := defaults
		change(&want)
		return want
	}
	for name, c := range map[string]struct{ own, want Template }{
		"nothing": {Template{}, defaults},
		"image":   {Template{Image: "other"}, with(func(t *Template) { t.Image = "other" })},
		"args keep the command": {
			Template{Args: []string{"-q"}}, with(func(t *Template) { t.Args = []string{"-q"} }),
		},
		"a command drops the args": {
			Template{Command: []string{"ps"}}, with(func(t *Template) { t.Command, t.Args = []string{"ps"}, nil }),
		},
		"a command with its own args": {
			Template{Command: []string{"ps"}, Args: []string{"-q"}},
			with(func(t *Template) { t.Command, t.Args = []string{"ps"}, []string{"-q"} }),
		},
		"env is merged by name": {
			Template{Env: map[string]string{"B": "", "C": "4"}},
			with(func(t *Template) { t.Env = map[string]string{"A": "1", "B": "", "C": "4"} }),
		},
		"no args":   {Template{Args: []string{}}, with(func(t *Template) { t.Args = nil })},
		"no mounts": {Template{Mounts: []Mount{}}, with(func(t *Template) { t.Mounts = nil })},
		"no command, and so no args": {
			Template{Command: []string{}}, with(func(t *Template) { t.Command, t.Args = nil, nil }),
		},
		"working dir": {Template{WorkingDir: "/tmp"}, with(func(t *Template) { t.WorkingDir = "/tmp" })},
		"mounts are no sums": {
			Template{Mounts: []Mount{{Source: "/x", Target: "/x"}}},
			with(func(t *Template) { t.Mounts = []Mount{{Source: "/x", Target: "/x"}} }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.own.Over(defaults)); diff != "" {
				t.Errorf("template (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(map[string]string{"A": "1", "B": "2"}, defaults.Env); diff != "" {
				t.Errorf("the defaults were changed (-want +got):\n%s", diff)
			}
		})
	}
	if got := (Template{}).Over(Template{}); got.Env == nil {
		t.Error("an environment is nil that others write to")
	}
}

func TestEffectiveTemplate(t *testing.T) {
	g := Group{
		Template: Template{Command: []string{"train"}, Env: map[string]string{"A": "1"}},
		Roles:    map[string]Role{"ps": {Template: Template{Env: map[string]string{"A": "2"}}}},
	}
	want := Template{Command: []string{"train"}, Env: map[string]string{"A": "2"}}
	if diff := cmp.Diff(want, g.EffectiveTemplate("ps")); diff != "" {
		t.Errorf("template (-want +got):\n%s", diff)
	}
}

// TestCommandOfRole: a role needs a command or an image, and may override its group's command with none.
func TestCommandOfRole(t *testing.T) {
	train := Template{Command: []string{"train"}}
	for name, c := range map[string]struct {
		group, role Template
		says        string
	}{
		"inherited":           {train, Template{}, ""},
		"neither":             {Template{}, Template{}, "neither role"},
		"empty over none":     {Template{}, Template{Command: []string{}}, "neither role"},
		"empty over another":  {train, Template{Command: []string{}}, `role "worker" overrides its group's command`},
		"empty with an image": {train, Template{Command: []string{}, Image: "trainer:1"}, ""},
	} {
		g := Group{
			Cluster: "lab", Name: "mnist", RestartScope: ScopeMember, WaitFor: WaitRunning, Template: c.group,
			Roles: map[string]Role{"worker": {Template: c.role}},
		}
		problems := g.Validate()
		if (c.says == "") != (len(problems) == 0) || c.says != "" && (len(problems) != 1 ||
			problems[0].Path.String() != `roles["worker"].command` || !strings.Contains(problems[0].Detail, c.says)) {
			t.Errorf("%s: got %v, want %q", name, problems, c.says)
		}
	}
}

func TestGroupEqual(t *testing.T) {
	group := func() Group {
		return Group{
			Cluster: "lab", Name: "mnist", Framework: "none",
			Template:   Template{Command: []string{"train"}, Env: map[string]string{"A": "1"}},
			Roles:      map[string]Role{"worker": {Replicas: new(2), GracePeriod: new(seconds(5))}},
			Completion: Completion{StopRest: new(false)},
			Triggers:   map[string]string{"data": "v1"},
		}
	}
	worker := func(change func(r *Role)) func(g *Group) {
		return func(g *Group) {
			r := g.Roles["worker"]
			change(&r)
			g.Roles["worker"] = r
		}
	}
	for name, c := range map[string]struct {
		change func(g *Group)
		equal  bool
	}{
		"the same":      {func(*Group) {}, true},
		"an empty list": {func(g *Group) { g.Completion.Roles, g.Args = []string{}, []string{} }, true},
		"empty lists over none": {
			worker(func(r *Role) { r.Args, r.Mounts = []string{}, []Mount{} }), true,
		},
		"an empty list over another": {
			worker(func(r *Role) { r.Command = []string{} }), false,
		},
		"another name":             {func(g *Group) { g.Name = "other" }, false},
		"an environment":           {func(g *Group) { g.Env["A"] = "2" }, false},
		"a count":                  {worker(func(r *Role) { r.Replicas = new(3) }), false},
		"an unmanaged count":       {worker(func(r *Role) { r.Replicas = nil }), false},
		"no final exit codes":      {worker(func(r *Role) { r.ExitCodes = &ExitCodeRule{ExitCodes{}} }), false},
		"a default written out":    {func(g *Group) { g.Completion.StopRest = nil }, false},
		"a further role":           {func(g *Group) { g.Roles["ps"] = Role{} }, false},
		"a trigger":                {func(g *Group) { g.Triggers["data"] = "v2" }, false},
		"a grace period":           {worker(func(r *Role) { r.GracePeriod = new(seconds(6)) }), false},
		"what an apply waits for":  {func(g *Group) { g.WaitFor = WaitCompleted }, false},
		"the scope of its restart": {func(g *Group) { g.RestartScope = ScopeGroup }, false},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := group(), group()
			c.change(&b)
			if a.Equal(b) != c.equal || b.Equal(a) != c.equal {
				t.Errorf("equal is %v and %v, not %v", a.Equal(b), b.Equal(a), c.equal)
			}
		})
	}
}

func TestRoleNames(t *testing.T) {
	g := Group{Roles: map[string]Role{"worker": {}, "chief": {}, "ps": {}}}
	if diff := cmp.Diff([]string{"chief", "ps", "worker"}, g.RoleNames()); diff != "" {
		t.Errorf("role names (-want +got):\n%s", diff)
	}
}

func TestPlace(t *testing.T) {
	for address, want := range map[string]string{
		"10.0.0.1": "10.0.0.1:9000", "gpu1": "gpu1:9000", "fd00::1": "[fd00::1]:9000",
	} {
		for scheduling, host := range map[Scheduling]string{SchedulingPinned: "a", SchedulingEngine: ""} {
			m := Member{Name: "mnist-ps-0", Role: "ps"}
			m.Place(scheduling, Assignment{Host: "a", Port: 9000}, address)
			if diff := cmp.Diff(Member{
				Name: "mnist-ps-0", Role: "ps", Scheduling: scheduling, Host: host, Port: 9000, Address: want,
			}, m); diff != "" {
				t.Errorf("member at %s (-want +got):\n%s", address, diff)
			}
		}
	}
}

func TestStateEnded(t *testing.T) {
	for state, want := range map[State]bool{
		StatePending: false, StateRunning: false, StateRestarting: false,
		StateCompleted: true, StateFailed: true, StateStopped: true,
	} {
		if state.Ended() != want {
			t.Errorf("%s has ended: %v", state, state.Ended())
		}
	}
}
