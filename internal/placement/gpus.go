package placement

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// widest limits the devices among which a set is searched. Hosts have at most 16; of more, the preferred ones are used.
const widest = 16

// suited returns those of a site's devices that could serve the claim if they were free.
func (f *fleet) suited(c *claim, at int) []int {
	var suited []int
	for _, i := range c.pool.bySite[at] {
		if f.devices[i].MemoryMiB >= c.memory && c.pool.slots[i] >= c.slots {
			suited = append(suited, i)
		}
	}
	return suited
}

// suits reports whether a site has the devices that one member asks for, free or not.
func (f *fleet) suits(c *claim, at int) bool { return c == nil || len(f.suited(c, at)) >= c.count }

// fits reports whether a device has what the claim asks for.
func (f *fleet) fits(c *claim, i int) bool {
	d := &f.devices[i]
	return d.MemoryMiB >= c.memory && c.pool.free(i, d.taken) >= c.slots
}

// offers reports whether a device may be given to a member that does not have it.
func (f *fleet) offers(c *claim, i int) bool {
	return f.fits(c, i) && f.devices[i].Lost == "" && f.devices[i].Closed == "" &&
		(f.devices[i].Busy == "" || c.pool.spec.ForeignRule() != domain.ForeignAvoid)
}

// worries reports whether a device is only given with a warning, and so as a last resort.
func (f *fleet) worries(c *claim, i int) bool {
	return f.devices[i].Busy != "" && c.pool.spec.ForeignRule() == domain.ForeignWarn
}

// has reports whether a site has the devices for one more member. worry allows those that are given with a warning.
func (f *fleet) has(c *claim, at int, worry bool) bool {
	if c == nil {
		return true
	}
	n := 0
	for _, i := range c.pool.bySite[at] {
		if f.offers(c, i) && (worry || !f.worries(c, i)) {
			n++
		}
	}
	return n >= c.count
}

// enough reports whether the pools have slots for all demands together, wherever they are. Lost devices count if
// members may keep them.
func (f *fleet) enough(demands []*demand) bool {
	lacking := map[*pool]int{}
	for _, d := range demands {
		if d.gpus != nil {
			lacking[d.gpus.pool] += len(d.members) * d.gpus.count * d.gpus.slots
		}
	}
	for p, slots := range lacking {
		for i := range f.devices {
			if f.devices[i].Lost == "" || len(f.staying) > 0 {
				slots -= p.free(i, f.devices[i].taken)
			}
		}
		if slots > 0 {
			return false
		}
	}
	return true
}

// keepable returns those of a member's devices that it can keep on a site, in the order in which it has them.
func (f *fleet) keepable(c *claim, at int, member string, had domain.DeviceSet) []int {
	if c == nil {
		return nil
	}
	kept := slices.DeleteFunc(f.numbered(had.UUIDs()), func(i int) bool {
		return !slices.Contains(c.pool.bySite[at], i) || !f.fits(c, i) || f.devices[i].Lost != "" && !f.staying[member]
	})
	if len(kept) > c.count {
		kept = f.pick(c, nil, kept, c.count)
	}
	return kept
}

// choose returns devices on a site for a member that keeps some: those, followed by the others in the order of the
// pool's document; false if there are too few.
func (f *fleet) choose(c *claim, at int, kept []int) (gpus []int, found bool) {
	if c == nil {
		return nil, true
	}
	from := slices.DeleteFunc(f.ranked(c, at), func(i int) bool { return slices.Contains(kept, i) })
	n := c.count - len(kept)
	if len(from) < n {
		return nil, false
	}
	rest := f.pick(c, kept, from, n)
	slices.Sort(rest)
	return slices.Concat(kept, rest), true
}

// options returns the sets of devices worth trying for one more member on a site that has some for it, the preferred
// one first. If it asks for one device, they are all that differ in what they leave to others.
func (f *fleet) options(c *claim, at int) [][]int {
	if c == nil || c.count > 1 {
		gpus, _ := f.choose(c, at, nil)
		return [][]int{gpus}
	}
	type kind struct {
		free   int
		memory int64
	}
	tried := map[kind]bool{}
	var sets [][]int
	for _, i := range f.ranked(c, at) {
		k := kind{c.pool.free(i, f.devices[i].taken), f.devices[i].MemoryMiB}
		if !tried[k] {
			sets = append(sets, []int{i})
		}
		tried[k] = true
	}
	return sets
}

// ranked returns the devices on a site that one more member may get. First come those that nobody else uses and that
// leave room for members that had them; then the pool's strategy decides, then the order of its document.
func (f *fleet) ranked(c *claim, at int) []int {
	ranked := slices.DeleteFunc(slices.Clone(c.pool.bySite[at]), func(i int) bool { return !f.offers(c, i) })
	reluctance := func(i int) int {
		r := 0
		if f.worries(c, i) {
			r += 2
		}
		if c.pool.free(i, f.devices[i].taken+f.devices[i].due) < c.slots {
			r++
		}
		return r
	}
	sign := -1
	if c.pool.spec.Strategy == domain.Pack {
		sign = 1
	}
	slices.SortStableFunc(ranked, func(a, b int) int {
		return cmp.Or(
			cmp.Compare(reluctance(a), reluctance(b)),
			sign*cmp.Compare(c.pool.free(a, f.devices[a].taken), c.pool.free(b, f.devices[b].taken)),
		)
	})
	return ranked
}

// pick returns the n devices that, with those kept, are best connected. Among equals, earlier devices win.
func (f *fleet) pick(c *claim, kept, from []int, n int) []int {
	if n == len(from) || n+len(kept) == 1 {
		return slices.Clone(from[:n])
	}
	var best []int
	var closest closeness
	for set := range sets(from[:min(len(from), max(n, widest))], n) {
		all := slices.Concat(kept, set)
		if near := f.closeness(c, all); best == nil || near.compare(closest) < 0 {
			best, closest = all[len(kept):], near
		}
	}
	return best
}

// closest returns how well connected the devices are that one more member would get on a site that has some for it. For
// a single device, all sites are equal.
func (f *fleet) closest(c *claim, at int) closeness {
	if c == nil || c.count == 1 {
		return closeness{}
	}
	from := f.ranked(c, at)
	key := fmt.Sprint(c.name, c.count, from)
	near, known := f.near[key]
	if !known {
		near = f.closeness(c, f.pick(c, nil, from, c.count))
		f.near[key] = near
	}
	return near
}

// closeness says how well connected devices are. Earlier fields count more.
type closeness struct {
	// worries is how many are given with a warning.
	worries int
	// islands is the number of parts not connected by NVLink, and nodes the number of NUMA nodes.
	islands, nodes int
	// links counts the pairs connected by NVLink.
	links int
}

func (c closeness) compare(other closeness) int {
	return cmp.Or(cmp.Compare(c.worries, other.worries), cmp.Compare(c.islands, other.islands),
		cmp.Compare(c.nodes, other.nodes), cmp.Compare(other.links, c.links))
}

func (f *fleet) closeness(c *claim, set []int) closeness {
	near := closeness{islands: len(set)}
	island := make([]int, len(set))
	for i, a := range set {
		island[i] = i
		if f.worries(c, a) {
			near.worries++
		}
		alone := true
		for j, b := range set[:i] {
			alone = alone && f.node(a) != f.node(b)
			if !slices.Contains(f.devices[a].links, b) {
				continue
			}
			near.links++
			if from, to := island[i], island[j]; from != to {
				near.islands--
				for k := range island[:i+1] {
					if island[k] == from {
						island[k] = to
					}
				}
			}
		}
		if alone {
			near.nodes++
		}
	}
	return near
}

// node returns the NUMA node of a device. Devices with unknown nodes count as sharing one.
func (f *fleet) node(i int) int {
	if node := f.devices[i].NUMANode; node != nil {
		return *node
	}
	return -1
}

// sets yields all sets of n items, those with the first items first, in a slice that is reused.
func sets(items []int, n int) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		at, set := make([]int, n), make([]int, n)
		for i := range at {
			at[i], set[i] = i, items[i]
		}
		for yield(set) {
			last := n - 1
			for last >= 0 && at[last] == len(items)-n+last {
				last--
			}
			if last < 0 {
				return
			}
			at[last]++
			for i := last + 1; i < n; i++ {
				at[i] = at[i-1] + 1
			}
			for i := last; i < n; i++ {
				set[i] = items[at[i]]
			}
		}
	}
}
