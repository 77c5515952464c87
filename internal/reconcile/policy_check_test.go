package reconcile_test

import (
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

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
