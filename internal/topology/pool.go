package topology

import (
	"slices"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// ValidatePools returns what a valid group's interchangeable roles can't have on an engine that distributes and
// restarts their members by itself, where all share one specification. members are those that the group declares.
func ValidatePools(g domain.Group, members []domain.Member) domain.Problems {
	if !slices.ContainsFunc(g.RoleNames(), func(role string) bool { return Interchangeable(g, role) }) {
		return nil
	}
	var ps domain.Problems
	members = slices.Clone(members)
	for i := range members {
		members[i].Address, members[i].Port = "host:1", 1
		members[i].Scheduling = domain.SchedulingEngine
		if !Interchangeable(g, members[i].Role) {
			members[i].Scheduling, members[i].Host = domain.SchedulingPinned, "host"
		}
	}
	l := NewLayout(g, members, nil)
	tried := map[string]bool{}
	for _, m := range members {
		if !m.Shared() || tried[m.Role] {
			continue
		}
		tried[m.Role] = true
		prog, _ := l.programs[m.Role]() // its templates have been parsed before without problems
		_, problems := prog.render(g, m)
		for _, p := range problems {
			p.Inputs = append(domain.OrOwn(m.Role, p.Path), p.Inputs...)
			ps = append(ps, p)
		}
		warnPool(&ps, g.Roles[m.Role], domain.Path{"roles", domain.Key(m.Role)})
	}
	return ps
}

// warnPool warns about rules of a role that the engine does not follow.
func warnPool(ps *domain.Problems, r domain.Role, at domain.Path) {
	if r.Placement.Strategy == domain.Pack {
		ps.Warn(at.At("placement", "strategy"), "Members not packed", "the engine places interchangeable members "+
			"itself, and spreads them; %q is the only other strategy that it supports", domain.OnePerHost)
	}
	if r.ExitCodes != nil {
		ps.Warn(at.At("exit_codes"), "Final exit codes not used", "the engine restarts interchangeable members "+
			"itself, and has no final exit codes: after any but 0 it tries again, as often as "+
			"restart.max_attempts allows")
	}
}
