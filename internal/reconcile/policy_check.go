package reconcile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/topology"
)

// UnknownGroup is the problem of a policy for a missing group; groups are the names of the existing ones.
func UnknownGroup(p domain.AutoscalingPolicy, groups []string) domain.Problem {
	there := "none"
	if len(groups) > 0 {
		there = strings.Join(quote(groups), ", ")
	}
	return domain.Problem{Path: domain.Path{"group"}, Summary: "Unknown group", Detail: fmt.Sprintf(
		"cluster %q has no group %q; it has %s. If the group is in the same configuration, refer to it (group = "+
			"trainyard_group.<name>.name), so that it is created first", p.Cluster, p.Group, there)}
}

func quote(names []string) []string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = fmt.Sprintf("%q", name)
	}
	return quoted
}

// CountedTwice is the problem of a role with both replicas and a policy.
func CountedTwice(at domain.Path, group, role string, replicas int, p domain.AutoscalingPolicy) domain.Problem {
	return domain.Problem{Path: at, Summary: "Count managed twice", Detail: fmt.Sprintf(
		"role %[1]q of group %[2]q has roles[%[1]q].replicas = %[3]d, and an autoscaling policy with min = %[4]d and "+
			"max = %[5]d; only one of the two can set the count: remove replicas or the policy",
		role, group, replicas, p.Min, p.Max)}
}

// CheckPolicy returns what prevents a valid policy from working for its role of a group.
func CheckPolicy(traits engine.Traits, group domain.Group, p domain.AutoscalingPolicy) domain.Problems {
	role, found := group.Roles[p.Role]
	if !found {
		return domain.Problems{{Path: domain.Path{"role"}, Summary: "Unknown role", Detail: fmt.Sprintf(
			"group %q has no role %q; it has %s", group.Name, p.Role, strings.Join(quote(group.RoleNames()), ", "),
		)}}
	}
	c := policyCheck{traits: traits, group: group, role: role, policy: p}
	if role.Replicas != nil {
		c.problems = append(c.problems, CountedTwice(domain.Path{"role"}, group.Name, p.Role, *role.Replicas, p))
	}
	if group.WaitFor == domain.WaitCompleted {
		c.problems.Warn(domain.Path{"group"}, "Policy created too late", "group %q has wait_for = %q: its apply ends "+
			"when the training does, and a policy created after that has nothing to scale; set wait_for = %q",
			group.Name, domain.WaitCompleted, domain.WaitRunning)
	}
	c.bounds()
	c.metrics()
	c.guards()
	c.hooks()
	c.vertical()
	return c.problems
}

// policyCheck checks a policy against its role of a group.
type policyCheck struct {
	traits   engine.Traits
	group    domain.Group
	role     domain.Role
	policy   domain.AutoscalingPolicy
	problems domain.Problems
}

func (c *policyCheck) bounds() {
	least, most := topology.Bounds(c.group, c.policy.Role)
	if c.policy.Min < least {
		c.problems.Add(domain.Path{"min"}, "Too few members",
			"min is %d, but framework %q needs at least %d member of role %q", c.policy.Min, c.group.Framework, least,
			c.policy.Role)
	}
	if most > 0 && c.policy.Max > most {
		c.problems.Add(domain.Path{"max"}, "Too many members",
			"max is %d, but framework %q takes at most %d member of role %q", c.policy.Max, c.group.Framework, most,
			c.policy.Role)
	}
}

func (c *policyCheck) metrics() {
	for _, name := range slices.Sorted(maps.Keys(c.policy.Metrics)) {
		m, at := c.policy.Metrics[name], domain.Path{"metrics", domain.Key(name)}
		if a := m.Algorithm.Ratio; a != nil {
			c.knownRole(at.At("algorithm", "ratio", "role"), a.Role)
		}
		if a := m.Algorithm.External; a != nil {
			c.program(at.At("algorithm", "external", "command"), a.Command, "url")
		}
		if m.Algorithm.IdleRoom != nil {
			c.bounded(at.At("algorithm", "idle_room"))
		}
		if s := m.Source.Agent; s != nil {
			c.measurable(at.At("source", "agent", "measure"), s.Measure)
		}
		if s := m.Source.Queue; s != nil {
			c.program(at.At("source", "queue", "command"), s.Command, "http or redis")
		}
		if s := m.Source.Progress; s != nil && s.Role != "" {
			c.knownRole(at.At("source", "progress", "role"), s.Role)
		}
	}
}

func (c *policyCheck) guards() {
	g, at := c.policy.Guards, domain.Path{"guards"}
	distributed := SchedulingOf(c.traits, c.group, c.policy.Role) == domain.SchedulingEngine
	if g.Remove != "" && g.Remove != domain.RemoveHighestIndex {
		at := at.At("remove")
		switch {
		case topology.HasIdentity(c.group, c.policy.Role):
			c.problems.Add(at, "Removal order not possible",
				"members of role %q are identified by their index, and %q would leave gaps; use %q", c.policy.Role,
				g.Remove, domain.RemoveHighestIndex)
		case distributed:
			c.problems.Add(at, "Removal order not possible", "engine %q distributes the members of role %q itself "+
				"and chooses which to remove, so %q is not possible; leave it out", c.traits.Name, c.policy.Role,
				g.Remove)
		}
	}
	if b := g.Busy; b != nil {
		if b.CPUPercent != nil {
			c.requested(at.At("busy", "cpu_percent"), "cpu_percent", "resources.cpus", c.role.Resources.CPUs > 0)
		}
		if b.GPUPercent != nil {
			c.requested(at.At("busy", "gpu_percent"), "gpu_percent", "gpus", c.role.GPUs != nil)
		}
	}
}

func (c *policyCheck) hooks() {
	for _, moment := range domain.HookMoments {
		hook, at := c.policy.Hooks.At(moment), domain.Path{"hooks", string(moment)}
		switch {
		case hook == nil:
		case moment == domain.BeforeRemoval &&
			SchedulingOf(c.traits, c.group, c.policy.Role) == domain.SchedulingEngine:
			c.problems.Add(at, "Hook not possible",
				"engine %q distributes the members of role %q itself and chooses which to remove, so no hook can be "+
					"called before that; "+
					"leave it out: guards.busy keeps all of them while one is busy, and those removed get the "+
					"grace_period of their role",
				c.traits.Name, c.policy.Role)
		default:
			c.program(at.At("command"), hook.Command, "url")
		}
	}
}

// vertical adds a problem if the policy sizes members that have no size of their own to start from.
func (c *policyCheck) vertical() {
	v, at := c.policy.Vertical, domain.Path{"vertical"}
	if v == nil || v.ApplyRule() == domain.ApplyNever {
		return
	}
	if SchedulingOf(c.traits, c.group, c.policy.Role) == domain.SchedulingEngine {
		c.problems.Add(at.At("apply"), "Members share one size", "engine %q distributes the members of role %q "+
			"itself, and they all request the same: none can start with another size unless all do; "+
			"set apply to %q, and roles[%[2]q].resources to what is recommended", c.traits.Name, c.policy.Role,
			domain.ApplyNever)
	}
	for _, r := range []struct {
		name      string
		scaled    bool
		requested bool
	}{{"cpus", v.CPUs != nil, c.role.Resources.CPUs > 0},
		{"memory_mib", v.MemoryMiB != nil, c.role.Resources.MemoryMiB > 0}} {
		if r.scaled && !r.requested {
			c.problems.Add(at.At(r.name), "Nothing to start from", "apply = %q changes what members request, but "+
				"roles[%q].resources.%s of group %q is not set; set it to the initial request, or set apply to %q",
				v.ApplyRule(), c.policy.Role, r.name, c.group.Name, domain.ApplyNever)
		}
	}
}

// knownRole adds a problem if the group has no such role.
func (c *policyCheck) knownRole(at domain.Path, role string) {
	if _, found := c.group.Roles[role]; !found {
		c.problems.Add(at, "Unknown role", "group %q has no role %q; it has %s", c.group.Name, role,
			strings.Join(quote(c.group.RoleNames()), ", "))
	}
}

// program adds a problem if the controller can't run a program.
func (c *policyCheck) program(at domain.Path, command []string, instead string) {
	checkProgram(&c.problems, c.traits, at, command, instead)
}

// measurable adds a problem if an agent's measure is undefined for the role.
func (c *policyCheck) measurable(at domain.Path, measure domain.AgentMeasure) {
	switch measure {
	case domain.AgentCPUPercent:
		c.requested(at, string(measure), "resources.cpus", c.role.Resources.CPUs > 0)
	case domain.AgentMemoryPercent:
		c.requested(at, string(measure), "resources.memory_mib", c.role.Resources.MemoryMiB > 0)
	case domain.AgentGPUPercent, domain.AgentGPUMemoryMiB, domain.AgentGPUMemoryPercent:
		c.requested(at, string(measure), "gpus", c.role.GPUs != nil)
	}
}

// bounded adds a problem if members request nothing, so that there is always room for one more.
func (c *policyCheck) bounded(at domain.Path) {
	r := c.role
	if r.Resources.CPUs == 0 && r.Resources.MemoryMiB == 0 && r.GPUs == nil &&
		r.Placement.Strategy != domain.OnePerHost {
		c.problems.Add(at, "Nothing to measure", "members of role %q of group %q request nothing, so there would "+
			"always be room for one more; set roles[%[1]q].resources or gpus, or placement.strategy = %q",
			c.policy.Role, c.group.Name, domain.OnePerHost)
	}
}

// requested adds a problem if the role does not request the resource that a measure is relative to.
func (c *policyCheck) requested(at domain.Path, what, attribute string, given bool) {
	if !given {
		c.problems.Add(at, "Nothing to measure",
			"%s is relative to what members request, and roles[%q].%s of group %q is not set; set it, or use "+
				"something else",
			what, c.policy.Role, attribute, c.group.Name)
	}
}

// CheckRoom warns if the policy's max could not be placed even on an empty cluster, and if a policy that fills the
// room could give none back.
func CheckRoom(view View, group domain.Group, p domain.AutoscalingPolicy) (problems domain.Problems) {
	if p.FillsRoom() {
		if view.scattered(group, p.Role) {
			problems.Warn(domain.Path{"role"}, "Does not give way", "engine %q distributes the members of role %q "+
				"over several hosts itself and chooses which to remove, so it is unknown whose room that frees: "+
				"the role does not give way to higher priorities. It does if its placement allows only one host, or "+
				"its members have gpus", view.Traits.Name, p.Role)
		}
		return problems
	}
	view = View{
		Traits:    view.Traits,
		Inventory: engine.Inventory{Hosts: view.Inventory.Hosts, Addresses: view.Inventory.Addresses},
		Pools:     view.Pools,
	}
	role := group.Roles[p.Role]
	role.Replicas = &p.Max
	group.Roles = maps.Clone(group.Roles)
	group.Roles[p.Role] = role
	// As if stored already, to skip the checks that only apply to new groups.
	view.Groups = map[string]domain.GroupDocument{group.Name: {Spec: group}}
	_, found := Decide(view, group)
	for _, problem := range found {
		if !problem.Warning {
			problems.Warn(domain.Path{"max"}, "Max exceeds capacity", "max is %d, but that many members do not fit "+
				"even in an empty cluster: %s. The policy never asks for more than fit", p.Max, problem.Detail)
			return problems
		}
	}
	return nil
}

// checkProgram adds a problem if the engine's controller can't run a program.
func checkProgram(ps *domain.Problems, traits engine.Traits, at domain.Path, command []string, instead string) {
	if len(command) > 0 && traits.Contained {
		ps.Add(at, "Commands not supported",
			"on engine %q, the controller runs in a container without other programs, and can't run %q; use %s instead",
			traits.Name, command, instead)
	}
}
