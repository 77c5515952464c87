package topology

import (
	"fmt"
	"slices"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Validate returns everything wrong with a group that its specification alone shows: names, roles, ranges,
// contradictory rules, and templates, which are rendered for every member. Placement finds port clashes and what the
// hosts can't provide.
func Validate(g domain.Group) domain.Problems {
	_, ps := Check(g)
	return ps
}

// Check returns what is wrong with a group, as [Validate] does, and the members that it declares, or nil if they can't
// be determined.
func Check(g domain.Group) (members []domain.Member, ps domain.Problems) {
	ps = g.Validate()
	for _, name := range g.RoleNames() {
		validateGPUEnv(&ps, g, name)
	}
	f, known := lookup(g.Framework)
	if !known {
		return nil, append(ps, unknownFramework(g.Framework))
	}
	if !validateRoles(&ps, g, f) {
		return nil, ps
	}
	// The framework is known and the counts are valid, so members can be laid out.
	members = Expand(g, Counts(g, nil), nil)
	validateCompletion(&ps, g, f, members)
	validateTemplates(&ps, g, members)
	return members, ps
}

// ValidateCounts returns why a valid group can't have these numbers of members instead of the declared ones: the
// framework needs more or allows fewer, or a template can't be rendered for all of them.
func ValidateCounts(g domain.Group, counts map[string]int, absent map[string][]int) domain.Problems {
	var ps domain.Problems
	f, _ := lookup(g.Framework)
	if validateCounts(&ps, g, f, counts) {
		validateNeeds(&ps, g, f, counts)
		validateTemplates(&ps, g, Expand(g, counts, absent))
	}
	return ps
}

func unknownFramework(name string) domain.Problem {
	return domain.Problem{
		Path:    domain.Path{"framework"},
		Summary: "Unknown framework",
		Detail: fmt.Sprintf("unknown framework %q; use one of %s. \"none\" is for programs that need none "+
			"of the others",
			name, domain.Quoted(Names())),
	}
}

// validateRoles checks the roles as a set, and reports whether members can be made of them.
func validateRoles(ps *domain.Problems, g domain.Group, f framework) bool {
	counts, total := Counts(g, nil), 0
	if !validateCounts(ps, g, f, counts) {
		return false
	}
	for _, name := range g.RoleNames() {
		total += counts[name]
		if len(f.roles) > 0 && !slices.Contains(f.roleNames(), name) {
			ps.Add(domain.Path{"roles", domain.Key(name)}, "Unknown role",
				"framework %q has no role %q; it has %s. Use framework \"none\" for roles of your own", f.name, name,
				domain.Quoted(f.roleNames()))
			ps.DecidedBy([]domain.Path{{"framework"}})
		}
		if f.role(name).fixed && g.Roles[name].OnScale == domain.OnScaleNone {
			ps.Add(domain.Path{"roles", domain.Key(name), "on_scale"}, "Members can't join",
				"members of framework %q agree on the world size when they start, so none can join or leave while "+
					"the others keep running (on_scale is %q): use %q, or leave it out",
				f.name, domain.OnScaleNone, domain.OnScaleRestart)
			ps.DecidedBy([]domain.Path{{"framework"}})
		}
	}
	if total == 0 {
		ps.Add(domain.Path{"roles"}, "No members", "a group needs at least one role with at least one replica")
		ps.DecidedBy(countInputs(g))
		return false
	}
	validateNeeds(ps, g, f, counts)
	return true
}

// countInputs returns the attributes that decide which members a group has.
func countInputs(g domain.Group) []domain.Path {
	if len(g.Roles) == 0 {
		return []domain.Path{{"framework"}, {"roles"}}
	}
	inputs := []domain.Path{{"framework"}}
	for _, name := range g.RoleNames() {
		inputs = append(inputs, domain.Path{"roles", domain.Key(name), "replicas"})
	}
	return inputs
}

// validateCounts checks the number of members of each role, and reports whether members can be made of them.
func validateCounts(ps *domain.Problems, g domain.Group, f framework, counts map[string]int) bool {
	for _, name := range g.RoleNames() {
		at := domain.Path{"roles", domain.Key(name), "replicas"}
		if counts[name] < 0 || counts[name] > domain.MaxReplicas {
			ps.Add(at, "Invalid number of members", "role %q has %d replicas; 0 to %d are allowed", name, counts[name],
				domain.MaxReplicas)
			return false
		}
		if most := f.role(name).most; most > 0 && counts[name] > most {
			ps.Add(at, "Too many members", "role %q has %d replicas; framework %q takes at most %d", name, counts[name],
				f.name, most)
		}
	}
	return true
}

// validateNeeds checks that the roles that the framework needs have members.
func validateNeeds(ps *domain.Problems, g domain.Group, f framework, counts map[string]int) {
	for _, set := range f.needs {
		if !slices.ContainsFunc(set, func(name string) bool { return counts[name] > 0 }) {
			ps.Add(domain.Path{"roles"}, "Missing role", "framework %q needs a role %s with at least 1 replica", f.name,
				alternatives(set))
			ps.DecidedBy(countInputs(g))
		}
	}
}

// validateCompletion checks the completion rule against the members.
func validateCompletion(ps *domain.Problems, g domain.Group, f framework, members []domain.Member) {
	at := domain.Path{"completion"}
	rule := Rule(g, members)
	inputs := append(countInputs(g), domain.Path{"wait_for"}, at.At("when"), at.At("roles"))
	switch {
	case rule.When == domain.WhenChief && len(rule.Members) == 0:
		ps.Add(at.At("when"), "No chief", "the chief is member 0 of a role %s, and none of them has members; name "+
			"another in completion.roles, or use another rule", alternatives(chiefCandidates(g, f)))
		ps.DecidedBy(inputs)
	case (rule.When == domain.WhenAll || rule.When == domain.WhenAny) && len(rule.Members) == 0:
		ps.Add(at.At("when"), "No members to complete",
			"rule %q applies to no member: roles that serve others don't count unless completion.roles names them",
			rule.When)
		ps.DecidedBy(inputs)
	case rule.When == domain.WhenNever && g.WaitFor == domain.WaitCompleted:
		ps.Add(domain.Path{"wait_for"}, "Waiting forever",
			"the group never completes (completion.when is %q): wait for %q", rule.When, domain.WaitRunning)
		ps.DecidedBy(inputs)
	}
}

// validateTemplates renders the templates of every role for every member, with placeholder addresses. If several
// members share a fault of one attribute, only the first is reported.
func validateTemplates(ps *domain.Problems, g domain.Group, members []domain.Member) {
	for i := range members {
		members[i].Host, members[i].Address, members[i].Port = "host", "host:1", 1
	}
	l := NewLayout(g, members, nil)
	inputs := append(countInputs(g), domain.Path{"name"}, domain.Path{"cluster"})
	reported := map[string]bool{}
	report := func(role string, problems domain.Problems) {
		for _, p := range problems {
			if at := p.Path.String(); !reported[at] {
				reported[at] = true
				p.Inputs = slices.Concat(inputs, domain.OrOwn(role, p.Path), p.Inputs)
				*ps = append(*ps, p)
			}
		}
	}
	for _, name := range g.RoleNames() {
		prog, problems := l.programs[name]()
		report(name, problems)
		if len(problems) > 0 {
			continue
		}
		for _, m := range members {
			if m.Role != name {
				continue
			}
			_, problems := prog.render(g, m)
			report(name, problems)
			if prog.static() {
				break
			}
		}
	}
}

// alternatives lists names of which any one is enough.
func alternatives(names []string) string {
	return strings.ReplaceAll(domain.Quoted(names), ", ", " or ")
}
