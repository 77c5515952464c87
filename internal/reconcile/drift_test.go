package reconcile_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// full is a group of ps-0, worker-0 and worker-1 that declares every kind of attribute; workers have their own program.
func full() domain.Group {
	return group(1, 2, func(g *domain.Group) {
		g.Template = domain.Template{
			Image: "trainer:1.2", Command: []string{"train"}, Args: []string{"--index={{.Index}}", "--fast"},
			WorkingDir: "/work",
			Env:        map[string]string{"SHARED": "group", "BOTH": "group", "NUMBER": "{{.Index}}"},
			Mounts:     []domain.Mount{{Source: "/z", Target: "/z"}, {Source: "/a", Target: "/a", ReadOnly: true}},
			Container: &domain.Container{
				StopSignal: "SIGINT", Ulimits: map[string]domain.Ulimit{"nofile": {Soft: 1, Hard: 2}},
				Ports: map[string]domain.PublishedPort{
					"web": {Target: 80, Published: 8080}, "ssh": {Target: 22, Published: 2222},
				},
				Secrets:     map[string]domain.SecretFile{"token": {Version: "1"}},
				HealthCheck: &domain.HealthCheck{Command: []string{"true"}, Interval: duration(time.Second)},
			},
		}
	}, role("worker", func(r *domain.Role) {
		r.Template = domain.Template{
			Command: []string{"work"}, Args: []string{"{{.Name}}"}, Env: map[string]string{"BOTH": "role"},
		}
		r.Resources = domain.ResourceRequirements{CPUs: 1, MemoryMiB: 64}
		r.Resources.Limits = domain.Resources{CPUs: 2}
	}))
}

// specOf returns the desired specification of a member.
func specOf(t *testing.T, d reconcile.Decision, name string) domain.MemberSpec {
	t.Helper()
	for i, m := range d.Members {
		if m.Name == name {
			spec, err := d.Layout.Spec(i)
			must(t, err)
			spec.Env = maps.Clone(spec.Env)
			spec.Mounts = slices.Clone(spec.Mounts)
			return spec
		}
	}
	t.Fatalf("there is no member %s", name)
	return domain.MemberSpec{}
}

// drift is a change from outside to a running member.
type drift struct {
	member   string
	live     func(live *domain.MemberSpec)
	replicas *int
	state    domain.State
	reason   domain.StopReason
}

// drifted returns a group as read after these changes from outside.
func drifted(t *testing.T, spec domain.Group, drifts ...drift) reconcile.Group {
	t.Helper()
	doc := stored(t, spec, 5)
	d := current(doc)
	observed := observe(d, 3)
	for _, drift := range drifts {
		i := slices.IndexFunc(observed, func(o domain.Observed) bool { return o.Name == drift.member })
		o := &observed[i]
		o.Replicas = drift.replicas
		if drift.state != "" {
			o.State, o.StopReason = drift.state, drift.reason
		}
		if drift.live != nil {
			live := specOf(t, d, drift.member)
			drift.live(&live)
			o.Live = &live
		}
	}
	return reconcile.Group{Decision: d, Observed: observed, Progress: reconcile.Progress(d, observed)}
}

// TestDrift checks three things after changes from outside: the changes that mend them, the specification as found, and
// the members that count as desired because their drift is visible in it.
func TestDrift(t *testing.T) {
	all := []string{"mnist-ps-0", "mnist-worker-0", "mnist-worker-1"}
	other := func(live *domain.MemberSpec) { live.Image = "trainer:1.3" }
	workers := func(change func(r *domain.Role)) func(g *domain.Group) { return role("worker", change) }
	for name, c := range map[string]struct {
		drifts []drift
		// mends are the changes by member.
		mends map[string]string
		// found turns the declared group into the one found.
		found   func(g *domain.Group)
		visible []string
	}{
		"nothing": {nil, map[string]string{}, func(*domain.Group) {}, all},
		"an image that the group declares": {
			[]drift{{member: "mnist-worker-1", live: other}}, map[string]string{"mnist-worker-1": "image"},
			func(g *domain.Group) { g.Image = "trainer:1.3" }, all,
		},
		"an image, of all members": {
			[]drift{
				{member: "mnist-ps-0", live: other}, {member: "mnist-worker-0", live: other},
				{member: "mnist-worker-1", live: other},
			},
			map[string]string{"mnist-ps-0": "image", "mnist-worker-0": "image", "mnist-worker-1": "image"},
			func(g *domain.Group) { g.Image = "trainer:1.3" }, all,
		},
		"members of a role differ: the first is shown": {
			[]drift{
				{member: "mnist-worker-1", live: func(live *domain.MemberSpec) { live.Command = []string{"b"} }},
				{member: "mnist-worker-0", live: func(live *domain.MemberSpec) { live.Command = []string{"a"} }},
			},
			map[string]string{"mnist-worker-0": "command", "mnist-worker-1": "command"},
			workers(func(r *domain.Role) { r.Command = []string{"a"} }), all,
		},
		"variables, each where it is declared": {
			[]drift{{member: "mnist-worker-0", live: func(live *domain.MemberSpec) {
				live.Env["SHARED"], live.Env["BOTH"], live.Env["NEW"] = "x", "y", "z"
				delete(live.Env, "NUMBER")
			}}},
			map[string]string{"mnist-worker-0": `env["BOTH"], env["NEW"], env["NUMBER"], env["SHARED"]`},
			func(g *domain.Group) {
				g.Env = map[string]string{"SHARED": "x", "BOTH": "group"}
				workers(func(r *domain.Role) { r.Env = map[string]string{"BOTH": "y", "NEW": "z"} })(g)
			}, all,
		},
		"a variable of the framework changed, and one gone": {
			[]drift{
				{member: "mnist-ps-0", live: func(live *domain.MemberSpec) { live.Env["TF_CONFIG"] = "{}" }},
				{member: "mnist-worker-0", live: func(live *domain.MemberSpec) { delete(live.Env, "TF_CONFIG") }},
			},
			map[string]string{"mnist-ps-0": `env["TF_CONFIG"]`, "mnist-worker-0": `env["TF_CONFIG"]`},
			role("ps", func(r *domain.Role) { r.Env = map[string]string{"TF_CONFIG": "{}"} }),
			[]string{"mnist-ps-0", "mnist-worker-1"},
		},
		"templates stay as they are written": {
			[]drift{{
				member: "mnist-ps-0",
				live:   func(live *domain.MemberSpec) { live.Args = []string{live.Args[0], "--slow", "--more"} },
			}},
			map[string]string{"mnist-ps-0": "args"},
			func(g *domain.Group) { g.Args = []string{"--index={{.Index}}", "--slow", "--more"} }, all,
		},
		"arguments beside a role's own command": {
			[]drift{{member: "mnist-worker-1", live: func(live *domain.MemberSpec) { live.Args = nil }}},
			map[string]string{"mnist-worker-1": "args"},
			workers(func(r *domain.Role) { r.Args = nil }), all,
		},
		"a mount": {
			[]drift{{member: "mnist-ps-0", live: func(live *domain.MemberSpec) {
				live.Mounts = []domain.Mount{
					{Type: domain.MountVolume, Source: "new", Target: "/b"},
					{Type: domain.MountBind, Source: "/z2", Target: "/z"},
					{Type: domain.MountBind, Source: "/a", Target: "/a", ReadOnly: true},
				}
			}}},
			map[string]string{"mnist-ps-0": "mounts"},
			func(g *domain.Group) {
				g.Mounts = []domain.Mount{
					{Source: "/z2", Target: "/z"}, {Source: "/a", Target: "/a", ReadOnly: true},
					{Type: domain.MountVolume, Source: "new", Target: "/b"},
				}
			}, all,
		},
		"resources and limits": {
			[]drift{{member: "mnist-worker-0", live: func(live *domain.MemberSpec) {
				live.Resources = domain.ResourceRequirements{
					CPUs: 0.5, Limits: domain.Resources{CPUs: 3, MemoryMiB: 1024},
				}
			}}},
			map[string]string{
				"mnist-worker-0": "resources.cpus, resources.memory_mib, resources.limits.cpus, resources.limits.memory_mib",
			},
			workers(func(r *domain.Role) {
				r.Resources = domain.ResourceRequirements{CPUs: 0.5, Limits: domain.Resources{CPUs: 3, MemoryMiB: 1024}}
			}), all,
		},
		"a limit that no role declares is gone": {
			[]drift{
				{member: "mnist-worker-0", live: func(live *domain.MemberSpec) { live.Resources.Limits.MemoryMiB = 0 }},
			},
			map[string]string{"mnist-worker-0": "resources.limits.memory_mib"},
			func(*domain.Group) {}, []string{"mnist-ps-0", "mnist-worker-1"},
		},
		"a grace period": {
			[]drift{{member: "mnist-ps-0", live: func(live *domain.MemberSpec) { live.GracePeriod = 7 }}},
			map[string]string{"mnist-ps-0": "grace_period"},
			role("ps", func(r *domain.Role) { r.GracePeriod = new(domain.Duration(7)) }), all,
		},
		"settings of the container, beside their defaults": {
			[]drift{{member: "mnist-worker-0", live: func(live *domain.MemberSpec) {
				c := live.Normal().Container
				c.Init, c.Secrets["token"] = true, domain.SecretFile{
					Version: "2", Target: "/run/secrets/token", Mode: 0o400,
				}
				c.Ports["web"] = domain.PublishedPort{Target: 80, Published: 9090, Protocol: "tcp"}
				c.HealthCheck = &domain.HealthCheck{Command: []string{"false"}, Interval: duration(time.Second)}
				live.Container = c
			}}},
			map[string]string{
				"mnist-worker-0": "container.init, container.health_check, container.ports, container.secrets",
			},
			func(g *domain.Group) {
				c := *g.Container
				c.Init, c.Secrets = true, map[string]domain.SecretFile{"token": {Version: "2"}}
				c.Ports = map[string]domain.PublishedPort{
					"web": {Target: 80, Published: 9090}, "ssh": {Target: 22, Published: 2222},
				}
				c.HealthCheck = &domain.HealthCheck{Command: []string{"false"}, Interval: duration(time.Second)}
				g.Container = &c
			}, all,
		},
		"nothing that a specification has": {
			[]drift{
				{
					member: "mnist-worker-0",
					live:   func(live *domain.MemberSpec) { live.Deviations = []string{"its labels were changed"} },
				},
				{member: "mnist-worker-1", live: func(*domain.MemberSpec) {}},
				{member: "mnist-ps-0", live: func(live *domain.MemberSpec) { live.Restart.MaxAttempts++ }},
			},
			map[string]string{
				"mnist-worker-0": "its labels were changed", "mnist-worker-1": "", "mnist-ps-0": "restart",
			},
			func(*domain.Group) {}, nil,
		},
		"more and fewer replicas": {
			[]drift{{member: "mnist-worker-0", replicas: new(3)}, {member: "mnist-ps-0", replicas: new(0)}},
			map[string]string{"mnist-worker-0": "replicas", "mnist-ps-0": "replicas"},
			func(g *domain.Group) {
				role("ps", func(r *domain.Role) { r.Replicas = new(0) })(g)
				workers(func(r *domain.Role) { r.Replicas = new(4) })(g)
			}, all,
		},
		"more and fewer replicas, as many in all": {
			[]drift{{member: "mnist-worker-0", replicas: new(2)}, {member: "mnist-worker-1", replicas: new(0)}},
			map[string]string{"mnist-worker-0": "replicas", "mnist-worker-1": "replicas"},
			func(*domain.Group) {}, []string{"mnist-ps-0"},
		},
		"replicas and image": {
			[]drift{{member: "mnist-worker-1", replicas: new(0), live: other}},
			map[string]string{"mnist-worker-1": "replicas, image"},
			func(g *domain.Group) {
				g.Image = "trainer:1.3"
				workers(func(r *domain.Role) { r.Replicas = new(1) })(g)
			}, all,
		},
		"finished is not drift": {
			[]drift{
				{member: "mnist-worker-0", live: other, replicas: new(0), state: domain.StateCompleted},
				{member: "mnist-ps-0", live: other, state: domain.StateStopped, reason: domain.StopCompleted},
			},
			map[string]string{}, func(*domain.Group) {}, all,
		},
		"failed, or stopped by somebody else": {
			[]drift{
				{member: "mnist-worker-1", live: other, state: domain.StateFailed},
				{member: "mnist-ps-0", replicas: new(0), state: domain.StateStopped},
			},
			map[string]string{"mnist-worker-1": "image", "mnist-ps-0": "replicas"},
			func(g *domain.Group) {
				g.Image = "trainer:1.3"
				role("ps", func(r *domain.Role) { r.Replicas = new(0) })(g)
			}, all,
		},
	} {
		t.Run(name, func(t *testing.T) {
			read := drifted(t, full(), c.drifts...)
			mends := map[string]string{}
			for _, change := range reconcile.Diff(read.Decision, read.Observed) {
				if change.Action != reconcile.ActionMend || change.Run != 3 ||
					read.Members[change.Index].Name != change.Member {
					t.Errorf("the change is %+v", change)
				}
				mends[change.Member] = strings.TrimPrefix(strings.TrimPrefix(change.Reason,
					"changed outside Terraform"),
					": ")
			}
			if diff := cmp.Diff(c.mends, mends); diff != "" {
				t.Errorf("mends (-want +got):\n%s", diff)
			}
			want := full()
			c.found(&want)
			if diff := cmp.Diff(want, read.Found().Spec); diff != "" {
				t.Errorf("the specification as found (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(full(), read.Document.Spec); diff != "" {
				t.Errorf("what is declared was changed (-before +after):\n%s", diff)
			}
			var visible []string
			for _, m := range read.Found().Members {
				visible = append(visible, m.Name)
			}
			if diff := cmp.Diff(c.visible, visible); diff != "" {
				t.Errorf("members as they should be, or seen not to be (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDriftOfArgumentsBesideACommand: a role with its own command inherits no arguments from the group.
func TestDriftOfArgumentsBesideACommand(t *testing.T) {
	serving := func(args ...string) domain.Group {
		return group(1, 1, func(g *domain.Group) { g.Args = []string{"--fast"} }, role("ps", func(r *domain.Role) {
			r.Command, r.Args = []string{"serve"}, args
		}))
	}
	read := drifted(t, serving(),
		drift{member: "mnist-ps-0", live: func(live *domain.MemberSpec) { live.Args = []string{"--more"} }})
	if diff := cmp.Diff(serving("--more"), read.Found().Spec); diff != "" {
		t.Errorf("the specification as found (-want +got):\n%s", diff)
	}
}

// TestDriftOfHosts: a member that was pinned elsewhere is shown there; one whose pin was removed is not shown.
func TestDriftOfHosts(t *testing.T) {
	read := drifted(t, group(1, 2),
		drift{member: "mnist-worker-0", live: func(live *domain.MemberSpec) { live.Host = "elsewhere" }},
		drift{member: "mnist-worker-1", live: func(live *domain.MemberSpec) { live.Host = "" }},
	)
	hosts := map[string]string{}
	for _, m := range read.Found().Members {
		hosts[m.Name] = m.Host
	}
	if diff := cmp.Diff(map[string]string{"mnist-ps-0": "a", "mnist-worker-0": "elsewhere"}, hosts); diff != "" {
		t.Errorf("hosts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(read.Document.Spec, read.Found().Spec); diff != "" {
		t.Errorf("the specification as found (-declared +found):\n%s", diff)
	}
}

// TestFoundCounts: a role shows the replicas that are found, unless it declares none.
func TestFoundCounts(t *testing.T) {
	read := drifted(t, group(1, 3))
	read.Observed = append(read.Observed[:3:3], domain.Observed{Name: "mnist-ps-1", Role: "ps"},
		domain.Observed{Name: "mnist-old-0", Role: "old"})
	found := read.Found().Spec
	if ps, workers := *found.Roles["ps"].Replicas, *found.Roles["worker"].Replicas; ps != 2 || workers != 2 ||
		len(found.Roles) != 2 {
		t.Errorf("found are %d parameter servers and %d workers, in %d roles", ps, workers, len(found.Roles))
	}
	read.Document.Spec = group(1, 3, role("worker", func(r *domain.Role) { r.Replicas = nil }))
	if found := read.Found().Spec; found.Roles["worker"].Replicas != nil {
		t.Errorf("an unmanaged role is found to declare %d replicas", *found.Roles["worker"].Replicas)
	}
}

// TestStaleComesBeforeDrift: a member that restarts anyway is not mended first, and shows no drift.
func TestStaleComesBeforeDrift(t *testing.T) {
	read := drifted(t, group(1, 1),
		drift{member: "mnist-ps-0", live: func(live *domain.MemberSpec) { live.Image = "other" }})
	read.Observed[0].Hash = "older"
	want := []reconcile.Change{{Action: reconcile.ActionRestart, Member: "mnist-ps-0", Reason: "specification changed"}}
	if diff := cmp.Diff(want, reconcile.Diff(read.Decision, read.Observed)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(read.Document.Spec, read.Found().Spec); diff != "" {
		t.Errorf("the specification as found (-declared +found):\n%s", diff)
	}
}

// change changes the live specification of a member from outside.
func (f *fake) change(name string, change func(live *domain.MemberSpec)) {
	f.put(name, func(o *domain.Observed) {
		live := f.members[name].spec
		change(&live)
		o.Live = &live
	})
}

// TestUpdateMendsDrift mends members of several runs; only the one whose specification changed as well restarts.
func TestUpdateMendsDrift(t *testing.T) {
	f, r := applied(t, group(1, 2))
	// run 3 of ps-0
	must(t, r.Update(within(t), group(1, 2, role("ps", func(r *domain.Role) { r.Resources.CPUs = 1 }))))
	f.change("mnist-ps-0", func(live *domain.MemberSpec) { live.Image = "other" })
	f.change("mnist-worker-0", func(live *domain.MemberSpec) { live.Env = nil })
	f.put("mnist-worker-1", func(o *domain.Observed) { o.Replicas = new(0) })

	e, _ := recorded(f)
	starts := &starts{Engine: e}
	must(t, reconcile.Reconciler{
		Engine: starts,
	}.Update(within(t), group(1, 2, role("ps", func(r *domain.Role) { r.Resources.CPUs = 1 }))))
	if diff := cmp.Diff([]string{
		"mnist-ps-0 in run 3", "mnist-worker-0 in run 1", "mnist-worker-1 in run 1", "start 1", "start 3", "start 5",
	}, starts.made); diff != "" {
		t.Errorf("what was staged and started (-want +got):\n%s", diff)
	}
	for name, want := range map[string]struct {
		runs, run int
	}{"mnist-ps-0": {2, 3}, "mnist-worker-0": {1, 1}, "mnist-worker-1": {1, 1}} {
		a := f.cast()[name]
		if a.runs != want.runs || a.observed.Run != want.run || a.observed.Live != nil || a.observed.Replicas != nil {
			t.Errorf("%s was started %d times, and is %+v", name, a.runs, a.observed)
		}
	}

	// A change of one role restarts its members in a new run, and mends the others in theirs.
	f.change("mnist-ps-0", func(live *domain.MemberSpec) { live.Image = "other" })
	f.change("mnist-worker-0", func(live *domain.MemberSpec) { live.Image = "other" })
	starts.made = nil
	must(t, reconcile.Reconciler{Engine: starts}.Update(within(t), group(1, 2)))
	if diff := cmp.Diff([]string{"mnist-ps-0 in run 7", "mnist-worker-0 in run 1", "start 1", "start 7"},
		starts.made); diff != "" {
		t.Errorf("what was staged and started (-want +got):\n%s", diff)
	}
}

// TestDriftRerunsNoCompletedGroup: members that still run are mended, and ended ones stay ended.
func TestDriftRerunsNoCompletedGroup(t *testing.T) {
	f, r := applied(t, group(1, 2, untilTheChiefEnds))
	f.put("mnist-worker-0", func(o *domain.Observed) { o.State = domain.StateCompleted })
	f.change("mnist-worker-0", func(live *domain.MemberSpec) { live.Image = "other" })
	f.change("mnist-worker-1", func(live *domain.MemberSpec) { live.Image = "other" })
	must(t, r.Update(within(t), group(1, 2, untilTheChiefEnds)))
	f.expectStates(t, "mnist-ps-0 (running)", "mnist-worker-0 (completed)", "mnist-worker-1 (running)")
	for name, a := range f.cast() {
		if a.runs != 1 {
			t.Errorf("%s was started %d times", name, a.runs)
		}
	}
	if f.cast()["mnist-worker-1"].observed.Live != nil {
		t.Error("the member that runs was not mended")
	}
}

// starts records what is staged and started.
type starts struct {
	engine.Engine
	made []string
}

func (s *starts) Stage(ctx context.Context, specs []domain.MemberSpec) error {
	for _, spec := range specs {
		s.made = append(s.made, fmt.Sprintf("%s in run %d", spec.Name, spec.Run))
	}
	return s.Engine.Stage(ctx, specs)
}

func (s *starts) Start(ctx context.Context, group string, run int) error {
	s.made = append(s.made, fmt.Sprintf("start %d", run))
	return s.Engine.Start(ctx, group, run)
}
