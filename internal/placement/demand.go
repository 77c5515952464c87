package placement

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// demand is a role's members and what each of them needs of its host.
type demand struct {
	role     string
	spec     domain.Role
	strategy domain.Strategy
	// division is what the role's members are spread over before the strategy applies; nil for none.
	division *division
	// members are sorted by index.
	members []domain.Member
	// ports are the host ports that each member publishes.
	ports []string
	// gpus is what each member asks of a GPU pool; nil for none.
	gpus *claim
	// isRun means that its member is one of many waiting runs, and that others wait for the same.
	isRun bool
	// grown means that a member requests more than it did when it was placed.
	grown bool
	// allowed are the indexes of the sites that the role's placement allows and that have the devices it asks for, free
	// or not, in order.
	allowed []int

	// choices is how many sites are left for the role's last member while no other role is placed.
	choices int
	// share is the largest fraction of the largest host that one member requests.
	share float64
}

// demandsOf returns the demands of the roles that have members, the hardest to place first.
func demandsOf(in Input, sites []site, gpus *fleet) []*demand {
	sizes := map[string]int{}
	for i := range in.Members {
		sizes[in.Members[i].Role]++
	}
	byRole := make(map[string]*demand, len(sizes))
	divisions := map[string]*division{}
	var demands []*demand
	for _, m := range in.Members {
		d := byRole[m.Role]
		if d == nil {
			d = newDemand(in, m.Role, sites, gpus)
			d.members = make([]domain.Member, 0, sizes[m.Role])
			if label := d.spec.Placement.SpreadBy; label != "" {
				if divisions[label] == nil {
					divisions[label] = divide(sites, label)
				}
				d.division = divisions[label]
			}
			byRole[m.Role] = d
			demands = append(demands, d)
		}
		d.members = append(d.members, m)
	}
	for _, d := range demands {
		slices.SortFunc(d.members, func(a, b domain.Member) int { return cmp.Compare(a.Index, b.Index) })
		if d.strategy == domain.OnePerHost || len(d.ports) > 0 {
			d.choices -= len(d.members) - 1
		}
	}
	slices.SortFunc(demands, func(a, b *demand) int {
		return cmp.Or(cmp.Compare(a.choices, b.choices), cmp.Compare(b.share, a.share), cmp.Compare(a.role, b.role))
	})
	return demands
}

func newDemand(in Input, role string, sites []site, gpus *fleet) *demand {
	spec := in.Group.Roles[role]
	d := &demand{
		role: role, spec: spec, strategy: cmp.Or(spec.Placement.Strategy, domain.Spread),
		ports: published(in, in.Group, role), gpus: gpus.claim(spec.GPUs),
	}
	before := in.Groups[in.Group.Name].Spec.Roles[role].Resources
	d.grown = spec.Resources.CPUs > before.CPUs || spec.Resources.MemoryMiB > before.MemoryMiB
	for i := range sites {
		if !sites[i].allows(spec.Placement) || !gpus.suits(d.gpus, i) {
			continue
		}
		d.allowed = append(d.allowed, i)
		if _, _, blocked := sites[i].blocked(d.ports); sites[i].closed == "" && !blocked &&
			sites[i].fits(spec.Resources.Requests()) && gpus.has(d.gpus, i, true) {
			d.choices++
		}
	}
	capacity := largest(sites)
	if capacity.CPUs > 0 {
		d.share = spec.Resources.CPUs / capacity.CPUs
	}
	if capacity.MemoryMiB > 0 {
		d.share = max(d.share, float64(spec.Resources.MemoryMiB)/float64(capacity.MemoryMiB))
	}
	if d.gpus != nil && len(d.allowed) > 0 {
		d.share = max(d.share, float64(d.gpus.count*d.gpus.slots)/float64(d.gpus.pool.most()))
	}
	return d
}

// allows reports whether the role's members may be on a site, whatever else is there.
func (d *demand) allows(at int) bool {
	_, found := slices.BinarySearch(d.allowed, at)
	return found
}

// portsPath returns the path of the attribute that declares the ports that the members publish.
func (d *demand) portsPath() domain.Path {
	if d.spec.Container != nil {
		return d.path("container", "ports")
	}
	return domain.Path{"container", "ports"}
}

// path returns the path of an attribute of the role.
func (d *demand) path(steps ...any) domain.Path {
	return domain.Path{"roles", domain.Key(d.role)}.At(steps...)
}

// each names who asks for something.
func (d *demand) each() string {
	if d.isRun {
		return "a run"
	}
	return fmt.Sprintf("each member of role %q", d.role)
}
