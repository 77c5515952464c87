package topology

import (
	"slices"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// customChiefRoles are the roles in which the chief is looked for if the group's roles are the user's own.
var customChiefRoles = []string{"chief", "master", "worker"}

// Rule returns the group's completion rule with the framework's defaults filled in, for a group of these members.
//
// All and any look at the completion's roles or, if it names none, at those that complete by themselves. The chief is
// member 0 of the first role with members among the completion's roles or, if it names none, the framework's.
func Rule(g domain.Group, members []domain.Member) domain.CompletionRule {
	f, _ := lookup(g.Framework)
	rule := domain.CompletionRule{When: g.Completion.When, StopRest: true}
	if rule.When == "" {
		rule.When = f.when
		if rule.When == domain.WhenChief && chief(g, f, members) == "" {
			rule.When = domain.WhenNever
		}
	}
	switch rule.When {
	case domain.WhenChief:
		if name := chief(g, f, members); name != "" {
			rule.Members = []string{name}
		}
	case domain.WhenAll, domain.WhenAny:
		for _, m := range members {
			if completes(g, f, m.Role) {
				rule.Members = append(rule.Members, m.Name)
			}
		}
	}
	if g.Completion.Deadline != nil {
		rule.Deadline = *g.Completion.Deadline
	}
	if g.Completion.StopRest != nil {
		rule.StopRest = *g.Completion.StopRest
	}
	return rule
}

// completes reports whether the members of a role count for the completion of the group.
func completes(g domain.Group, f framework, role string) bool {
	if len(g.Completion.Roles) > 0 {
		return slices.Contains(g.Completion.Roles, role)
	}
	return !f.role(role).serves
}

// chief returns the name of the group's chief; "" if it has none.
func chief(g domain.Group, f framework, members []domain.Member) string {
	for _, role := range chiefCandidates(g, f) {
		for _, m := range members {
			if m.Role == role && m.Index == 0 {
				return m.Name
			}
		}
	}
	return ""
}

// chiefCandidates returns the roles whose member 0 can be the chief, in order of preference: those that the user names;
// the framework's roles that complete; among the user's own roles, the only one, or those with the usual names.
func chiefCandidates(g domain.Group, f framework) []string {
	switch {
	case len(g.Completion.Roles) > 0:
		return g.Completion.Roles
	case len(f.roles) == 0 && len(g.Roles) == 1:
		return g.RoleNames()
	case len(f.roles) == 0:
		return customChiefRoles
	}
	var names []string
	for _, r := range f.roles {
		if !r.serves {
			names = append(names, r.name)
		}
	}
	return names
}
