package reconcile_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// uncounted leaves the number of workers to a policy.
func uncounted(g *domain.Group) { role("worker", func(r *domain.Role) { r.Replicas = nil })(g) }

// policy returns a policy for the workers of the group "mnist".
func policy(changes ...func(p *domain.AutoscalingPolicy)) domain.AutoscalingPolicy {
	p := domain.AutoscalingPolicy{Cluster: "lab", Group: "mnist", Role: "worker", Min: 1, Max: 8,
		Metrics: map[string]domain.ScalingMetric{
			"cpu": {
				Source:    domain.ScalingSource{Agent: &domain.AgentSource{Measure: domain.AgentCPUs}},
				Algorithm: domain.ScalingAlgorithm{Target: &domain.TargetAlgorithm{Value: 2}},
			},
		}}
	for _, change := range changes {
		change(&p)
	}
	return p
}

// onDestroy sets what happens to the count when a policy ends.
func onDestroy(rule domain.OnDestroy) func(p *domain.AutoscalingPolicy) {
	return func(p *domain.AutoscalingPolicy) { p.OnDestroy = rule }
}

// from sets the min of a policy.
func from(least int) func(p *domain.AutoscalingPolicy) {
	return func(p *domain.AutoscalingPolicy) { p.Min = least }
}

// count sets the number of workers of the group "mnist", as if a policy had done so.
func (f *fake) count(t *testing.T, n int) {
	t.Helper()
	doc, err := engine.Get[domain.GroupDocument](t.Context(), f, "mnist")
	must(t, err)
	doc.Counts["worker"] = n
	must(t, reconcile.Reconciler{Engine: f}.Update(within(t), withCounts(t, f, doc)))
}

// withCounts stores a document, and returns its specification.
func withCounts(t *testing.T, f *fake, doc domain.GroupDocument) domain.Group {
	t.Helper()
	_, err := engine.Put(t.Context(), f, doc)
	must(t, err)
	return doc.Spec
}

func TestPutPolicy(t *testing.T) {
	f, _ := applied(t, group(1, 1, uncounted))
	f.count(t, 3)
	e, calls := recorded(f)
	r := reconcile.Reconciler{Engine: e}
	put := func(spec domain.AutoscalingPolicy, created, wantAdopted bool) domain.AutoscalingPolicyDocument {
		t.Helper()
		adopted, err := r.PutPolicy(t.Context(), spec, created)
		if err != nil || adopted != wantAdopted {
			t.Fatalf("adopted %t, %v", adopted, err)
		}
		doc, err := r.Policy(t.Context(), "mnist", "worker")
		if err != nil || !doc.Spec.Equal(spec) || doc.Ending {
			t.Fatalf("%v, it is stored as %+v", err, doc)
		}
		return doc
	}
	if doc := put(policy(), true, false); doc.Revision != 1 || doc.Before != 3 {
		t.Errorf("a new policy is stored as %+v", doc)
	}
	if !slices.Contains(calls.made(), "StartController") {
		t.Errorf("without a controller nobody keeps to it: the calls are %v", calls.made())
	}
	if doc := put(policy(), true, true); doc.Revision != 1 {
		t.Errorf("one that is adopted is stored as %+v", doc)
	}
	var exists *reconcile.PolicyExistsError
	if _, err := r.PutPolicy(t.Context(), policy(from(2)), true); !errors.As(err, &exists) ||
		!strings.Contains(err.Error(), "terraform import <address> lab/mnist/worker") {
		t.Errorf("another one: %v", err)
	}
	f.count(t, 5)
	if doc := put(policy(from(2)), false, false); doc.Revision != 2 || doc.Before != 3 {
		t.Errorf("after a change it is stored as %+v", doc)
	}
	if doc := put(policy(from(2)), false, false); doc.Revision != 2 {
		t.Errorf("without a change it is stored as %+v", doc)
	}

	// A policy whose removal was interrupted is replaced, whatever its specification.
	doc := documents[domain.AutoscalingPolicyDocument](f)["mnist/worker"]
	doc.Ending = true
	set(f, doc)
	if doc := put(policy(from(4)), true, false); doc.Before != 3 {
		t.Errorf("a new one in the place of another that ends is stored as %+v", doc)
	}
	// A deleted policy is created again.
	must(t, engine.Delete[domain.AutoscalingPolicyDocument](t.Context(), f, "mnist/worker"))
	if doc := put(policy(from(4)), false, false); doc.Before != 5 {
		t.Errorf("one that was gone is stored as %+v", doc)
	}
}

// When two runs create a policy at once, one creates it and the other finds it.
func TestPutPolicyTwiceAtOnce(t *testing.T) {
	for name, test := range map[string]struct {
		other  domain.AutoscalingPolicy
		exists bool
	}{"the same": {policy(), false}, "another": {policy(from(2)), true}} {
		f, _ := applied(t, group(1, 1, uncounted))
		e, calls := recorded(f)
		calls.before = func(call string) error {
			if call == "Put policy" && len(documents[domain.AutoscalingPolicyDocument](f)) == 0 {
				_, err := engine.Put(t.Context(), f, domain.AutoscalingPolicyDocument{Spec: test.other})
				return err
			}
			return nil
		}
		adopted, err := reconcile.Reconciler{Engine: e}.PutPolicy(t.Context(), policy(), true)
		var exists *reconcile.PolicyExistsError
		if errors.As(err, &exists) != test.exists || adopted == test.exists {
			t.Errorf("%s: adopted %t, %v", name, adopted, err)
		}
	}
	f, r := applied(t, group(1, 1, uncounted))
	_, err := r.PutPolicy(t.Context(), policy(), true)
	must(t, err)
	e, calls := recorded(f)
	calls.before = func(call string) error {
		if call == "Put policy" {
			return engine.ErrConflict
		}
		return nil
	}
	if _, err := (reconcile.Reconciler{Engine: e}).PutPolicy(t.Context(), policy(from(2)),
		false); !errors.Is(err, engine.ErrConflict) {
		t.Errorf("a change on top of somebody else's: %v", err)
	}
}

func TestPutPolicyNeedsItsRole(t *testing.T) {
	f, r := applied(t, group(1, 1))
	for name, test := range map[string]struct {
		policy domain.AutoscalingPolicy
		says   string
	}{
		"a group": {
			policy(func(p *domain.AutoscalingPolicy) { p.Group = "cifar" }),
			`group: Unknown group: cluster "lab" has no group "cifar"; it has "mnist"`,
		},
		"a role": {
			policy(func(p *domain.AutoscalingPolicy) { p.Role = "chief" }),
			`role: Unknown role: group "mnist" has no role "chief"; it has "ps", "worker"`,
		},
		"without any number": {
			policy(),
			`role: Count managed twice: role "worker" of group "mnist" has roles["worker"].replicas = 1, and an autoscaling policy with min = 1 and max = 8`,
		},
		"that takes this few": {
			policy(func(p *domain.AutoscalingPolicy) { p.Min = 0 }),
			`min: Too few members: min is 0, but framework "tensorflow" needs at least 1 member of role "worker"`,
		},
	} {
		if _, err := r.PutPolicy(t.Context(), test.policy, true); err == nil ||
			!strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(documents[domain.AutoscalingPolicyDocument](f)) > 0 {
		t.Errorf("stored are %v", documents[domain.AutoscalingPolicyDocument](f))
	}
	f.Drop(engine.Key{Kind: domain.ClusterKind})
	if _, err := r.PutPolicy(t.Context(), policy(), true); !errors.Is(err, engine.ErrNotFound) ||
		!strings.Contains(err.Error(), `cluster "lab"`) {
		t.Errorf("without a cluster: %v", err)
	}
}

func TestCheckPolicy(t *testing.T) {
	swarm := engine.Traits{Name: "swarm", Schedules: true, Contained: true}
	spark := func(changes ...func(r *domain.Role)) domain.Group {
		worker := domain.Role{Resources: domain.ResourceRequirements{CPUs: 2, MemoryMiB: 1024}}
		for _, change := range changes {
			change(&worker)
		}
		return domain.Group{
			Cluster: "lab", Name: "spark", Framework: "spark",
			Roles: map[string]domain.Role{"master": {Replicas: new(1)}, "worker": worker},
		}
	}
	gpus := func(r *domain.Role) { r.GPUs = &domain.GPURequest{Pool: "p"} }
	bare := func(r *domain.Role) { r.Resources = domain.ResourceRequirements{} }
	metric := func(m domain.ScalingMetric) func(p *domain.AutoscalingPolicy) {
		return func(p *domain.AutoscalingPolicy) { p.Metrics = map[string]domain.ScalingMetric{"m": m} }
	}
	measure := func(measure domain.AgentMeasure) func(p *domain.AutoscalingPolicy) {
		return metric(domain.ScalingMetric{Source: domain.ScalingSource{Agent: &domain.AgentSource{Measure: measure}}})
	}
	guards := func(g domain.ScalingGuards) func(p *domain.AutoscalingPolicy) {
		return func(p *domain.AutoscalingPolicy) { p.Guards = g }
	}
	external := metric(domain.ScalingMetric{Algorithm: domain.ScalingAlgorithm{
		External: &domain.ExternalAlgorithm{ScalingHook: domain.ScalingHook{Command: []string{"decide"}}},
	}})
	queue := metric(domain.ScalingMetric{
		Source: domain.ScalingSource{Queue: &domain.QueueSource{Command: []string{"length"}}},
	})
	hooked := func(hook domain.ScalingHook, moment domain.HookMoment) func(p *domain.AutoscalingPolicy) {
		return func(p *domain.AutoscalingPolicy) {
			if p.Hooks.AfterAddition = &hook; moment == domain.BeforeRemoval {
				p.Hooks = domain.ScalingHooks{BeforeRemoval: &hook}
			}
		}
	}
	broker, program := domain.ScalingHook{URL: "http://broker/drain"}, domain.ScalingHook{Command: []string{"drain"}}
	sizes := func(apply domain.VerticalApply) func(p *domain.AutoscalingPolicy) {
		return func(p *domain.AutoscalingPolicy) {
			p.Vertical = &domain.VerticalScaling{MemoryMiB: &domain.AmountBounds{Min: 1, Max: 2}, Apply: apply}
		}
	}
	for name, test := range map[string]struct {
		traits engine.Traits
		group  domain.Group
		change func(p *domain.AutoscalingPolicy)
		// says is the only expected problem; "" for none.
		says string
	}{
		"workers of Spark":           {group: spark()},
		"sizes that are recommended": {traits: swarm, group: spark(bare), change: sizes("")},
		"sizes":                      {group: spark(), change: sizes(domain.ApplyAtStart)},
		"sizes of members on GPUs":   {traits: swarm, group: spark(gpus), change: sizes(domain.ApplyAtStart)},
		"sizes of nothing": {
			group: spark(bare), change: sizes(domain.ApplyAtStart),
			says: `vertical.memory_mib: Nothing to start from: apply = "restart" changes what members request, but roles["worker"].resources.memory_mib of group "spark" is not set`,
		},
		"sizes of a pool": {
			traits: swarm, group: spark(), change: sizes(domain.ApplyAtStart),
			says: `vertical.apply: Members share one size: engine "swarm" distributes the members of role "worker" itself, and they all request the same`,
		},
		"down to none":         {group: spark(), change: from(0)},
		"in percent":           {group: spark(), change: measure(domain.AgentCPUPercent)},
		"its own programs":     {group: spark(), change: external},
		"a queue by a program": {group: spark(), change: queue},
		"GPUs":                 {group: spark(gpus), change: measure(domain.AgentGPUMemoryPercent)},
		"the least busy first": {
			group: spark(), change: guards(domain.ScalingGuards{Remove: domain.RemoveLeastBusy}),
		},
		"the highest index on Swarm": {
			traits: swarm, group: spark(), change: guards(domain.ScalingGuards{Remove: domain.RemoveHighestIndex}),
		},
		"busy by its processors": {
			group:  spark(gpus),
			change: guards(domain.ScalingGuards{Busy: &domain.BusyGuard{CPUPercent: new(10.0), GPUPercent: new(10.0)}}),
		},

		"another role": {
			group: spark(), change: func(p *domain.AutoscalingPolicy) { p.Role = "submit" },
			says: `role: Unknown role: group "spark" has no role "submit"; it has "master", "worker"`,
		},
		"a role that is counted": {
			group: spark(func(r *domain.Role) { r.Replicas = new(3) }),
			says:  `role: Count managed twice: role "worker" of group "spark" has roles["worker"].replicas = 3, and an autoscaling policy with min = 1 and max = 8; only one of the two can set the count: remove replicas or the policy`,
		},
		"a group that is waited for": {
			group: func() domain.Group { g := spark(); g.WaitFor = domain.WaitCompleted; return g }(),
			says:  `group: Policy created too late: group "spark" has wait_for = "completed"`,
		},
		"masters": {
			group:  domain.Group{Name: "spark", Framework: "spark", Roles: map[string]domain.Role{"master": {}}},
			change: func(p *domain.AutoscalingPolicy) { p.Role = "master" },
			says:   `max: Too many members: max is 8, but framework "spark" takes at most 1 member of role "master"`,
		},
		"what is needed": {
			group: domain.Group{
				Name: "mpi", Framework: "mpi", Roles: map[string]domain.Role{"launcher": {}, "worker": {}},
			},
			change: from(0),
			says:   `min: Too few members: min is 0, but framework "mpi" needs at least 1 member of role "worker"`,
		},
		"percent of nothing": {
			group: spark(bare), change: measure(domain.AgentCPUPercent),
			says: `metrics["m"].source.agent.measure: Nothing to measure: cpu_percent is relative to what members request, and roles["worker"].resources.cpus of group "spark" is not set`,
		},
		"memory in percent of nothing": {
			group: spark(bare), change: measure(domain.AgentMemoryPercent),
			says: `memory_percent is relative to what members request, and roles["worker"].resources.memory_mib`,
		},
		"no GPUs": {
			group: spark(), change: measure(domain.AgentGPUPercent),
			says: `metrics["m"].source.agent.measure: Nothing to measure: gpu_percent is relative to what members request, and roles["worker"].gpus of group "spark" is not set`,
		},
		"no memory of GPUs": {
			group: spark(), change: measure(domain.AgentGPUMemoryMiB), says: `gpu_memory_mib is relative`,
		},
		"busy by nothing": {
			group: spark(bare), change: guards(domain.ScalingGuards{Busy: &domain.BusyGuard{CPUPercent: new(10.0)}}),
			says: `guards.busy.cpu_percent: Nothing to measure: cpu_percent is relative to what members request, and roles["worker"].resources.cpus`,
		},
		"busy without GPUs": {
			group: spark(), change: guards(domain.ScalingGuards{Busy: &domain.BusyGuard{GPUPercent: new(10.0)}}),
			says: `guards.busy.gpu_percent: Nothing to measure: gpu_percent is`,
		},
		"a ratio to nobody": {
			group: spark(), change: metric(domain.ScalingMetric{
				Algorithm: domain.ScalingAlgorithm{Ratio: &domain.RatioAlgorithm{Role: "ps", Per: 2}},
			}),
			says: `metrics["m"].algorithm.ratio.role: Unknown role: group "spark" has no role "ps"; it has "master", "worker"`,
		},
		"progress of nobody": {
			group: spark(), change: metric(domain.ScalingMetric{
				Source: domain.ScalingSource{Progress: &domain.ProgressSource{Role: "ps"}},
			}),
			says: `metrics["m"].source.progress.role: Unknown role: group "spark" has no role "ps"`,
		},
		"the least busy with GPUs": {
			group: spark(gpus), change: guards(domain.ScalingGuards{Remove: domain.RemoveLeastBusy}),
		},
		"the least busy with GPUs on Swarm": {
			traits: swarm, group: spark(gpus), change: guards(domain.ScalingGuards{Remove: domain.RemoveLeastBusy}),
		},
		"the least busy of many with identity": {
			group: domain.Group{
				Name: "train", Framework: "tensorflow", Roles: map[string]domain.Role{"worker": {}},
			}, change: guards(domain.ScalingGuards{Remove: domain.RemoveLeastBusy}),
			says: `guards.remove: Removal order not possible: members of role "worker" are identified by their index, and "least_busy" would leave gaps; use "highest_index"`,
		},
		"the least busy on Swarm": {
			traits: swarm, group: spark(), change: guards(domain.ScalingGuards{Remove: domain.RemoveLeastBusy}),
			says: `guards.remove: Removal order not possible: engine "swarm" distributes the members of role "worker" itself`,
		},
		"a program on Swarm that decides": {
			traits: swarm, group: spark(), change: external,
			says: `metrics["m"].algorithm.external.command: Commands not supported: on engine "swarm", the controller runs in a container without other programs, and can't run ["decide"]; use url instead`,
		},
		"a program on Swarm that counts": {
			traits: swarm, group: spark(), change: queue,
			says: `metrics["m"].source.queue.command: Commands not supported: on engine "swarm", the controller`,
		},
		"a hook on Swarm before a removal": {
			traits: swarm, group: spark(), change: hooked(broker, domain.BeforeRemoval),
			says: `hooks.before_removal: Hook not possible: engine "swarm" distributes the members of role "worker" itself and chooses which to remove, so no hook can be called before that; leave it out: guards.busy keeps all of them`,
		},
		"a hook on Swarm before a removal of members with GPUs": {
			traits: swarm, group: spark(gpus), change: hooked(broker, domain.BeforeRemoval),
		},
		"a hook on Swarm after an addition": {
			traits: swarm, group: spark(), change: hooked(broker, domain.AfterAddition),
		},
		"a program on Swarm before a removal": {
			traits: swarm, group: spark(gpus), change: hooked(program, domain.BeforeRemoval),
			says: `hooks.before_removal.command: Commands not supported: on engine "swarm", the controller`,
		},
		"a program on Swarm after an addition": {
			traits: swarm, group: spark(), change: hooked(program, domain.AfterAddition),
			says: `hooks.after_addition.command: Commands not supported: on engine "swarm", the controller`,
		},
	} {
		p := policy(func(p *domain.AutoscalingPolicy) { p.Group = test.group.Name })
		if test.change != nil {
			test.change(&p)
		}
		problems := reconcile.CheckPolicy(test.traits, test.group, p)
		if test.says == "" && len(problems) > 0 ||
			test.says != "" && (len(problems) != 1 || !strings.Contains(problems[0].Error(), test.says)) {
			t.Errorf("%s: %v", name, problems)
		}
	}
}

// Warnings are only about what could never be placed, not about what is in the way at the moment.
func TestCheckRoom(t *testing.T) {
	host := domain.Host{Address: "10.0.0.1", Capacity: domain.Capacity{CPUs: 4, MemoryMiB: 8000}}
	view := reconcile.View{
		Inventory: engine.Inventory{
			Hosts: map[string]domain.Host{"a": host, "b": host}, Closed: map[string]string{"a": "host a is down"},
			Lost:     map[string]string{"a": "host a is down"},
			Reserved: map[string]domain.Resources{"b": {CPUs: 4}}, BusyPorts: map[string][]int{"10.0.0.1": {9000}},
		},
		Groups: map[string]domain.GroupDocument{"other": {
			Spec: domain.Group{Name: "other", Roles: map[string]domain.Role{
				"worker": {Replicas: new(1), Resources: domain.ResourceRequirements{CPUs: 4}},
			}},
			Assignments: map[string]domain.Assignment{"other-worker-0": {Host: "b"}},
		}},
	}
	spec := group(1, 1, uncounted, role("worker", func(r *domain.Role) {
		r.Resources.CPUs, r.Port, r.Placement.SpreadBy = 1, new(9000), "zone" // the hosts have lost this label
	}))
	if problems := reconcile.CheckRoom(view, spec, policy()); len(problems) > 0 {
		t.Errorf("8 on 8 processors: %v", problems)
	}
	nine := policy(func(p *domain.AutoscalingPolicy) { p.Max = 9 })
	const says = `max: Max exceeds capacity: max is 9, but that many members do not fit even in an empty cluster: role "worker" has 9 members of 1 CPU each, and only 8 of them fit`
	if problems := reconcile.CheckRoom(view, spec, nine); len(problems) != 1 || !problems[0].Warning ||
		!strings.Contains(problems[0].Error(), says) {
		t.Errorf("9 on 8 processors: %v", problems)
	}
	if spec.Roles["worker"].Replicas != nil {
		t.Error("the group was changed")
	}
}

// A policy that ends leaves the count that on_destroy asks for.
func TestEndPolicy(t *testing.T) {
	for name, test := range map[string]struct {
		policy domain.AutoscalingPolicy
		want   int
	}{
		"kept, as nothing is said": {policy(from(4)), 5},
		"kept":                     {policy(from(4), onDestroy(domain.OnDestroyKeep)), 5},
		"restored":                 {policy(from(4), onDestroy(domain.OnDestroyRestore)), 3},
		"the least":                {policy(from(4), onDestroy(domain.OnDestroyMin)), 4},
		"more than there are":      {policy(from(6), onDestroy(domain.OnDestroyMin)), 6},
		"one that changes nothing": {
			policy(from(4), onDestroy(domain.OnDestroyMin), func(p *domain.AutoscalingPolicy) { p.DryRun = true }), 5,
		},
		"what was there is what it is": {policy(from(5), onDestroy(domain.OnDestroyMin)), 5},
	} {
		t.Run(name, func(t *testing.T) {
			f, r := applied(t, group(1, 1, uncounted))
			f.count(t, 3)
			_, err := r.PutPolicy(t.Context(), test.policy, true)
			must(t, err)
			f.count(t, 5)
			left, err := r.EndPolicy(within(t), "mnist", "worker")
			if err != nil || left != "" {
				t.Errorf("left %q, %v", left, err)
			}
			if doc, err := engine.Get[domain.GroupDocument](t.Context(), f, "mnist"); err != nil ||
				doc.Counts["worker"] != test.want {
				t.Errorf("the count is %d, want %d (%v)", doc.Counts["worker"], test.want, err)
			}
			if len(documents[domain.AutoscalingPolicyDocument](f)) > 0 {
				t.Errorf("stored are %v", documents[domain.AutoscalingPolicyDocument](f))
			}
			if left, err := r.EndPolicy(within(t), "mnist", "worker"); err != nil || left != "" {
				t.Errorf("once more: left %q, %v", left, err)
			}
		})
	}
}

// A policy ends even if there is nothing left to scale. Declared replicas are left alone.
func TestEndPolicyWithoutItsRole(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, f *fake, r reconcile.Reconciler){
		"no group": func(_ *testing.T, f *fake, _ reconcile.Reconciler) { drop[domain.GroupDocument](f) },
		"no cluster": func(t *testing.T, f *fake, _ reconcile.Reconciler) {
			must(t, f.Delete(t.Context(), engine.Key{Kind: domain.ClusterKind}))
		},
		"another role": func(t *testing.T, _ *fake, r reconcile.Reconciler) {
			must(t, r.Update(within(t), group(1, 0, onlyChief)))
		},
		"a number": func(t *testing.T, _ *fake, r reconcile.Reconciler) { must(t, r.Update(within(t), group(1, 2))) },
	} {
		f, r := applied(t, group(1, 1, uncounted))
		_, err := r.PutPolicy(t.Context(), policy(from(4), onDestroy(domain.OnDestroyMin)), true)
		must(t, err)
		change(t, f, r)
		left, err := r.EndPolicy(within(t), "mnist", "worker")
		if err != nil || left != "" || len(documents[domain.AutoscalingPolicyDocument](f)) > 0 {
			t.Errorf("%s: left %q, %v; stored are %v", name, left, err, documents[domain.AutoscalingPolicyDocument](f))
		}
	}
}

// EndPolicy may be interrupted after any of its calls, and the next one finishes, even if another run
// changes the policy meanwhile.
func TestEndPolicyDiesBetweenCalls(t *testing.T) {
	died := errors.New("died")
	for _, rule := range []domain.OnDestroy{domain.OnDestroyKeep, domain.OnDestroyMin} {
		for k := 0; ; k++ {
			f, r := applied(t, group(1, 1, uncounted))
			_, err := r.PutPolicy(t.Context(), policy(from(4), onDestroy(rule)), true)
			must(t, err)
			e, calls := recorded(f)
			changed := false
			calls.before = func(call string) error {
				if call == "Put policy" && !changed {
					changed = true
					_, err := r.PutPolicy(context.Background(), policy(from(3), onDestroy(rule)), false)
					return err
				}
				if len(calls.made()) > k {
					return died
				}
				return nil
			}
			_, err = reconcile.Reconciler{Engine: e}.EndPolicy(within(t), "mnist", "worker")
			if err != nil && !errors.Is(err, died) {
				t.Fatalf("%s, death after call %d, %v: %v", rule, k, calls.made(), err)
			}
			f.locks = map[string]engine.Holder{}
			left, err := r.EndPolicy(within(t), "mnist", "worker")
			if err != nil || left != "" || len(documents[domain.AutoscalingPolicyDocument](f)) > 0 {
				t.Fatalf("%s, after the death after call %d: left %q, %v; stored are %v", rule, k, left, err,
					documents[domain.AutoscalingPolicyDocument](f))
			}
			want := map[domain.OnDestroy]int{domain.OnDestroyKeep: 1, domain.OnDestroyMin: 3}[rule]
			if doc, err := engine.Get[domain.GroupDocument](t.Context(), f, "mnist"); err != nil ||
				changed && doc.Counts["worker"] != want {
				t.Errorf("%s, after the death after call %d: the count is %d, want %d (%v)", rule, k,
					doc.Counts["worker"], want, err)
			}
			if len(calls.made()) <= k {
				break
			}
		}
	}
}

// A group that an apply holds can't be scaled: the policy stops deciding, and EndPolicy is repeated.
func TestEndPolicyOfGroupThatIsApplied(t *testing.T) {
	f, r := applied(t, group(1, 1, uncounted))
	_, err := r.PutPolicy(t.Context(), policy(from(4), onDestroy(domain.OnDestroyMin)), true)
	must(t, err)
	f.locks[reconcile.GroupLock("mnist")] = engine.Holder{Who: "ops@bastion", Process: 7}
	var locked *engine.LockedError
	if _, err := r.EndPolicy(within(t), "mnist", "worker"); !errors.As(err, &locked) ||
		!documents[domain.AutoscalingPolicyDocument](f)["mnist/worker"].Ending {
		t.Errorf("%v; stored are %+v", err, documents[domain.AutoscalingPolicyDocument](f))
	}
	f.unlock(reconcile.GroupLock("mnist"))
	if left, err := r.EndPolicy(within(t), "mnist", "worker"); err != nil || left != "" ||
		len(documents[domain.AutoscalingPolicyDocument](f)) > 0 {
		t.Errorf("left %q, %v; stored are %v", left, err, documents[domain.AutoscalingPolicyDocument](f))
	}
}

// Destroying a group removes the policies for its roles, and no others.
func TestDestroyEndsPolicies(t *testing.T) {
	f, r := applied(t, group(1, 1, uncounted))
	must(t, r.Update(within(t), group(1, 1, uncounted, func(g *domain.Group) { g.Name = "other" })))
	_, err := r.PutPolicy(t.Context(), policy(), true)
	must(t, err)
	_, err = r.PutPolicy(t.Context(), policy(func(p *domain.AutoscalingPolicy) { p.Group = "other" }), true)
	must(t, err)
	e, calls := recorded(f)
	must(t, reconcile.Reconciler{Engine: e}.Destroy(within(t), "mnist"))
	made := calls.made()
	if diff := cmp.Diff([]string{"List policy", "Delete policy", "List learned-model", "Prune", "Delete group"},
		made[len(made)-5:]); diff != "" {
		t.Errorf("the last calls (-want +got):\n%s", diff)
	}
	if _, other := documents[domain.AutoscalingPolicyDocument](f)["other/worker"]; !other ||
		len(documents[domain.AutoscalingPolicyDocument](f)) != 1 {
		t.Errorf("stored are %v", documents[domain.AutoscalingPolicyDocument](f))
	}
}
