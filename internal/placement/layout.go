package placement

import (
	"cmp"
	"maps"
	"slices"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// layout is a distribution of members over sites, while it grows.
type layout struct {
	sites []site
	// siteOf is the index of each placed member's site, by the member's name.
	siteOf map[string]int
	// counts are the numbers of a role's members, by role and site.
	counts map[string][]int
	byName map[string]int
}

func newLayout(sites []site) *layout {
	l := &layout{
		sites:  slices.Clone(sites),
		siteOf: map[string]int{},
		counts: map[string][]int{},
		byName: make(map[string]int, len(sites)),
	}
	for i, s := range sites {
		l.byName[s.name] = i
		l.sites[i].published = maps.Clone(s.published)
	}
	return l
}

// keep leaves the role's members on their current hosts where that is still allowed.
func (l *layout) keep(d *demand, current map[string]domain.Assignment) {
	for _, m := range d.members {
		at, found := l.byName[current[m.Name].Host]
		if !found || !l.sites[at].allows(d.spec.Placement) || l.spent(d, at) {
			continue
		}
		if !d.grown && l.sites[at].keeps(d.spec.Resources) || l.sites[at].fits(d.spec.Resources) {
			l.put(d, m, at)
			if d.grown {
				l.sites[at].enter(d.spec.Resources)
			}
		}
	}
}

// fillAll fills all roles in order, and tells whether every member has a host.
func (l *layout) fillAll(demands []*demand) bool {
	for _, d := range demands {
		if !l.fill(d) {
			return false
		}
	}
	return true
}

// fill places the members of the role that have no host yet, and tells whether all have one now.
func (l *layout) fill(d *demand) bool {
	for _, m := range d.members {
		if _, placed := l.siteOf[m.Name]; placed {
			continue
		}
		at, found := l.best(d)
		if !found {
			return false
		}
		l.put(d, m, at)
		l.sites[at].enter(d.spec.Resources)
	}
	return true
}

// best returns the site that the role's strategy prefers among those with room for one more member. Sites are
// sorted by name, so the name decides between equals.
func (l *layout) best(d *demand) (best int, found bool) {
	prefer := l.preferEmpty
	if d.strategy == domain.Pack {
		prefer = l.preferFull
	}
	counts := l.count(d)
	for _, at := range d.allowed {
		if l.hasRoom(d, at) && (!found || prefer(counts, at, best) < 0) {
			best, found = at, true
		}
	}
	return best, found
}

// preferEmpty orders sites by the role's members, then by all members, then by free CPUs.
func (l *layout) preferEmpty(counts []int, a, b int) int {
	x, y := &l.sites[a], &l.sites[b]
	return cmp.Or(
		cmp.Compare(counts[a], counts[b]),
		cmp.Compare(x.members, y.members),
		cmp.Compare(y.free().CPUs, x.free().CPUs),
	)
}

// preferFull orders sites by their members, the most first.
func (l *layout) preferFull(_ []int, a, b int) int {
	return cmp.Compare(l.sites[b].members, l.sites[a].members)
}

// hasRoom tells whether one more member of the role can be put on a site.
func (l *layout) hasRoom(d *demand, at int) bool {
	return l.sites[at].closed == "" && !l.spent(d, at) && l.sites[at].fits(d.spec.Resources)
}

// spent tells whether the role may have no further member on a site, whatever the capacity.
func (l *layout) spent(d *demand, at int) bool {
	_, _, blocked := l.sites[at].blocked(d.ports)
	return blocked || d.strategy == domain.OnePerHost && l.count(d)[at] > 0
}

func (l *layout) put(d *demand, m domain.Member, at int) {
	l.siteOf[m.Name] = at
	l.count(d)[at]++
	l.sites[at].add(d.spec.Resources)
	l.sites[at].publish(d.ports, m.Name)
}

// allowed returns copies of the sites that the role's placement allows.
func (l *layout) allowed(d *demand) []site {
	sites := make([]site, 0, len(d.allowed))
	for _, at := range d.allowed {
		sites = append(sites, l.sites[at])
	}
	return sites
}

// named returns the sites of these names, or all where there are none.
func (l *layout) named(hosts []string) []site {
	return slices.DeleteFunc(slices.Clone(l.sites), func(s site) bool { return len(hosts) > 0 && !slices.Contains(hosts, s.name) })
}

// placed returns how many of the role's members have a host.
func (l *layout) placed(d *demand) int {
	n := 0
	for _, count := range l.count(d) {
		n += count
	}
	return n
}

// count returns the numbers of the role's members by site.
func (l *layout) count(d *demand) []int {
	counts, found := l.counts[d.role]
	if !found {
		counts = make([]int, len(l.sites))
		l.counts[d.role] = counts
	}
	return counts
}
