package placement

import (
	"cmp"
	"maps"
	"slices"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// layout is a distribution of members over sites as it is being built.
type layout struct {
	sites []site
	fleet *fleet
	// spots are where members are placed, by name.
	spots map[string]spot
	// counts are the numbers of a role's members, by role and site.
	counts map[string][]int
	// tallies are the numbers of members by value of the label that they are spread by.
	tallies map[crew][]int
	byName  map[string]int
}

// spot is where a member of a demand is placed.
type spot struct {
	demand *demand
	site   int
	// gpus are its devices.
	gpus []int
	// entered means that it has to fit alongside what others have reserved; pinned means that it stays without a check
	// whether it fits.
	entered, pinned bool
}

// held returns what the member has of its devices.
func (s spot) held() held { return held{s.demand.gpus, s.gpus} }

func newLayout(sites []site, gpus *fleet) *layout {
	l := &layout{
		sites:   slices.Clone(sites),
		fleet:   gpus.clone(),
		spots:   map[string]spot{},
		counts:  map[string][]int{},
		tallies: map[crew][]int{},
		byName:  make(map[string]int, len(sites)),
	}
	for i, s := range sites {
		l.byName[s.name] = i
		l.sites[i].published = maps.Clone(s.published)
	}
	return l
}

// keep leaves the role's members on their current hosts where that is still allowed, with those of their devices that
// they can keep. [layout.complete] adds missing devices, once all members have kept what they can.
func (l *layout) keep(d *demand, current map[string]domain.Assignment) {
	for _, m := range d.members {
		if s, found := l.stay(d, m.Name, current[m.Name]); found {
			l.put(m, s)
		}
	}
}

// pin leaves the role's members where they are.
func (l *layout) pin(d *demand, current map[string]domain.Assignment) {
	for _, m := range d.members {
		if at, found := l.byName[current[m.Name].Host]; found {
			l.put(m, spot{demand: d, site: at, gpus: l.fleet.numbered(current[m.Name].GPUs.UUIDs()), pinned: true})
		}
	}
}

// stay returns the spot of a member where it is now, with those of its devices that it can keep; false if it can't stay
// there.
func (l *layout) stay(d *demand, member string, current domain.Assignment) (s spot, found bool) {
	at, found := l.byName[current.Host]
	if !found || !d.allows(at) || l.spent(d, at) {
		return spot{}, false
	}
	if (d.grown || !l.sites[at].keeps(d.spec.Resources.Requests())) && !l.sites[at].fits(d.spec.Resources.Requests()) {
		return spot{}, false
	}
	return spot{demand: d, site: at, gpus: l.fleet.keepable(d.gpus, at, member, current.GPUs), entered: d.grown}, true
}

// complete gives the role's staying members the devices that they lack, and drops those whose hosts do not have them.
func (l *layout) complete(d *demand) {
	for _, m := range d.members {
		s, placed := l.spots[m.Name]
		if !placed || d.gpus == nil || len(s.gpus) == d.gpus.count {
			continue
		}
		l.drop(m)
		if gpus, found := l.fleet.choose(d.gpus, s.site, s.gpus); found {
			s.gpus = gpus
			l.put(m, s)
		}
	}
}

// fillAll fills all roles in order, and reports whether every member has a host.
func (l *layout) fillAll(demands []*demand) bool {
	for _, d := range demands {
		if !l.fill(d) {
			return false
		}
	}
	return true
}

// fill places the members of the role that have no host yet, and reports whether all have one now.
func (l *layout) fill(d *demand) bool {
	return !slices.ContainsFunc(d.members, func(m domain.Member) bool { return !l.place(d, m) })
}

// place gives a member a host if it has none yet, and reports whether it has one now.
func (l *layout) place(d *demand, m domain.Member) bool {
	if _, placed := l.spots[m.Name]; placed {
		return true
	}
	at, found := l.best(d, false)
	if !found {
		at, found = l.best(d, true)
	}
	if !found {
		return false
	}
	gpus, _ := l.fleet.choose(d.gpus, at, nil)
	l.put(m, spot{demand: d, site: at, gpus: gpus, entered: true})
	return true
}

// best returns the site that the role's strategy prefers among those with room for one more member. worry allows
// devices that are given with a warning. Sites are sorted by name, so the name decides between equals.
func (l *layout) best(d *demand, worry bool) (best int, found bool) {
	prefer := l.preference(d)
	for _, at := range d.allowed {
		if l.hasRoom(d, at, worry) && (!found || prefer(at, best) < 0) {
			best, found = at, true
		}
	}
	return best, found
}

// preference returns the order of sites for the role's next member: first by the number of members with the same value
// of the spread label, then by strategy. Where the strategy has no preference, the best connected devices decide.
func (l *layout) preference(d *demand) func(a, b int) int {
	counts := l.count(d)
	preferFew := func(a, b int) int { return cmp.Compare(counts[a], counts[b]) }
	preferClose := func(a, b int) int { return l.fleet.closest(d.gpus, a).compare(l.fleet.closest(d.gpus, b)) }
	var orders []func(a, b int) int
	if d.division != nil {
		orders = append(orders, l.preferEven(d))
	}
	if d.strategy == domain.Pack {
		orders = append(orders, l.preferFull, preferClose)
	} else {
		orders = append(orders, preferFew, preferClose, l.preferEmpty)
	}
	return inTurn(orders...)
}

// inTurn orders sites by the first of the orders that distinguishes them.
func inTurn(orders ...func(a, b int) int) func(a, b int) int {
	return func(a, b int) int {
		for _, order := range orders {
			if c := order(a, b); c != 0 {
				return c
			}
		}
		return 0
	}
}

// preferEmpty orders sites by number of members, then by free CPUs.
func (l *layout) preferEmpty(a, b int) int {
	x, y := &l.sites[a], &l.sites[b]
	return cmp.Or(cmp.Compare(x.members, y.members), cmp.Compare(y.free().CPUs, x.free().CPUs))
}

// preferFull orders sites by number of members, most first.
func (l *layout) preferFull(a, b int) int {
	return cmp.Compare(l.sites[b].members, l.sites[a].members)
}

// hasRoom reports whether one more member of the role fits on a site. worry allows devices that are given with a
// warning.
func (l *layout) hasRoom(d *demand, at int, worry bool) bool {
	return l.sites[at].closed == "" && !l.spent(d, at) && l.sites[at].fits(d.spec.Resources.Requests()) &&
		l.fleet.has(d.gpus, at, worry)
}

// spent reports whether the role may have no further member on a site, whatever its capacity.
func (l *layout) spent(d *demand, at int) bool {
	_, _, blocked := l.sites[at].blocked(d.ports)
	return blocked || d.strategy == domain.OnePerHost && l.count(d)[at] > 0
}

// put gives a member a spot, and drop undoes it.
func (l *layout) put(m domain.Member, s spot) {
	d, at := s.demand, &l.sites[s.site]
	l.spots[m.Name] = s
	l.count(d)[s.site]++
	l.enroll(d, s.site, 1)
	at.add(d.spec.Resources.Requests())
	at.publish(d.ports, m.Name)
	if s.entered {
		at.enter(d.spec.Resources.Requests())
	}
	l.fleet.hold(s.held())
	l.fleet.settle(m.Name)
}

func (l *layout) drop(m domain.Member) {
	s := l.spots[m.Name]
	d, at := s.demand, &l.sites[s.site]
	delete(l.spots, m.Name)
	l.count(d)[s.site]--
	l.enroll(d, s.site, -1)
	at.remove(d.spec.Resources.Requests())
	at.withdraw(d.ports)
	if s.entered {
		at.leave(d.spec.Resources.Requests())
	}
	l.fleet.release(s.held())
	l.fleet.expect(m.Name)
}

// allowed returns copies of the sites that the role's placement allows.
func (l *layout) allowed(d *demand) []site {
	sites := make([]site, 0, len(d.allowed))
	for _, at := range d.allowed {
		sites = append(sites, l.sites[at])
	}
	return sites
}

// named returns the sites with these names, or all if there are no names.
func (l *layout) named(hosts []string) []site {
	return slices.DeleteFunc(slices.Clone(l.sites),
		func(s site) bool { return len(hosts) > 0 && !slices.Contains(hosts, s.name) })
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
