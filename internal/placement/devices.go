package placement

import (
	"maps"
	"slices"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// DeviceState is the present state of a device.
type DeviceState struct {
	// Lost says why it can't be used, such as "fallen off the bus (XID 79)". Its members can't stay, except those in
	// [Input.Staying].
	Lost string
	// Closed says why it takes no new members, for example because nothing is known about the GPUs of its host. Members
	// that have it stay.
	Closed string
	// Busy names a user of the device that is not a member, such as "python (process 4711)".
	Busy string
}

// fleet is the GPUs of the cluster's pools, and what members hold of them. A device is identified by its number,
// whichever hosts and pools list it.
type fleet struct {
	pools map[string]*pool
	// devices are in the order of the pools' documents; numbers are their indexes by UUID.
	devices []device
	numbers map[string]int
	// others are the holders of devices in other groups, by device.
	others map[int][]holder
	// had is what the group's members had before this placement. staying are those that keep lost devices.
	had     map[string]held
	staying map[string]bool
	// near caches [fleet.closest] by pool, number, and the devices to choose from.
	near map[string]closeness
}

// device is a GPU and what is in use of it.
type device struct {
	domain.Device
	DeviceState
	// links are the devices that it reaches over NVLink.
	links []int
	// taken is the memory that members hold of it, in MiB, which is comparable across pools.
	taken int64
	// due is what unplaced members of the group had of it: they may come back to it, or are about to go.
	due int64
}

// pool is a GPU pool and its devices.
type pool struct {
	spec domain.GPUPool
	// exclusive devices have one owner each; others have slots of size MiB.
	exclusive bool
	size      int64
	// bySite are its devices by site, in the order of the pool's document.
	bySite [][]int
	// slots are the numbers of slots by device, over the devices of all pools; 0 for those that this pool does not
	// have.
	slots []int
}

// claim is what each member of a role asks of a pool.
type claim struct {
	// pool is nil if the cluster no longer has it.
	pool *pool
	name string
	// count is the number of devices. On each of them, the member takes slots and asks for memory.
	count, slots int
	memory       int64
}

// held is the devices that a member has by a claim.
type held struct {
	claim *claim
	gpus  []int
}

// holder is a member that holds some memory of a device, in MiB. group is empty for the group being placed.
type holder struct {
	member, role, group string
	mib                 int64
}

// newFleet returns the devices of all pools, with what the members of other groups hold.
func newFleet(in Input, sites []site, others []neighbour) *fleet {
	f := &fleet{
		pools: map[string]*pool{}, numbers: map[string]int{}, others: map[int][]holder{}, had: map[string]held{},
		staying: in.Staying, near: map[string]closeness{},
	}
	for _, name := range slices.Sorted(maps.Keys(in.Pools)) {
		spec := in.Pools[name].Spec
		p := &pool{
			spec: spec, exclusive: spec.SharingRule() == domain.Exclusive, size: spec.MemoryMiBPerSlot,
			bySite: make([][]int, len(sites)),
		}
		for i := range sites {
			for _, d := range in.Pools[name].Devices[sites[i].name] {
				if n := f.number(d, in.Devices); !slices.Contains(p.bySite[i], n) {
					p.bySite[i] = append(p.bySite[i], n)
				}
			}
		}
		f.pools[name] = p
	}
	for i := range f.devices {
		f.devices[i].links = f.numbered(f.devices[i].Links)
	}
	for _, p := range f.pools {
		p.slots = make([]int, len(f.devices))
		for _, devices := range p.bySite {
			for _, i := range devices {
				p.slots[i] = p.spec.SlotsOf(f.devices[i].Device)
			}
		}
	}
	f.survey(in, others)
	return f
}

// survey records what members have now: members of other groups hold it, the group's own are to be placed.
func (f *fleet) survey(in Input, others []neighbour) {
	for _, n := range others {
		has := held{f.claim(n.gpus), f.numbered(n.assignment.GPUs.UUIDs())}
		f.hold(has)
		for _, i := range has.gpus {
			f.others[i] = append(f.others[i], holder{n.member, n.role, n.group, has.claim.takes(&f.devices[i])})
		}
	}
	before := in.Groups[in.Group.Name].Spec
	for member, assigned := range in.Current {
		if assigned.GPUs != "" {
			f.had[member] = held{
				f.claim(before.Roles[roleOf(in.Group.Name, member)].GPUs), f.numbered(assigned.GPUs.UUIDs()),
			}
			f.expect(member)
		}
	}
}

// number returns the number of a device, and assigns a new one if it has none yet.
func (f *fleet) number(d domain.Device, states map[string]DeviceState) int {
	n, found := f.numbers[d.UUID]
	if !found {
		n = len(f.devices)
		f.numbers[d.UUID] = n
		f.devices = append(f.devices, device{Device: d, DeviceState: states[d.UUID]})
	}
	return n
}

// numbered returns the numbers of those devices that a pool has, without duplicates.
func (f *fleet) numbered(uuids []string) []int {
	var numbers []int
	for _, uuid := range uuids {
		if n, found := f.numbers[uuid]; found && !slices.Contains(numbers, n) {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// clone returns a fleet with its own copy of the devices.
func (f *fleet) clone() *fleet {
	c := *f
	c.devices = slices.Clone(f.devices)
	return &c
}

// claim returns what a request asks for; nil for none.
func (f *fleet) claim(r *domain.GPURequest) *claim {
	if r == nil {
		return nil
	}
	c := &claim{pool: f.pools[r.Pool], name: r.Pool, count: r.Devices(), slots: 1, memory: r.MemoryMiB}
	if c.pool != nil {
		c.slots = c.pool.spec.SlotsFor(*r)
	}
	return c
}

// takes returns the memory that a claim takes of a device: its slots, or all of it. A claim on a pool that no longer
// exists takes all of it, too.
func (c *claim) takes(d *device) int64 {
	if c == nil || c.pool == nil || c.pool.exclusive {
		return max(d.MemoryMiB, 1)
	}
	return int64(c.slots) * c.pool.size
}

func (f *fleet) hold(h held) {
	for _, i := range h.gpus {
		f.devices[i].taken += h.claim.takes(&f.devices[i])
	}
}

func (f *fleet) release(h held) {
	for _, i := range h.gpus {
		f.devices[i].taken -= h.claim.takes(&f.devices[i])
	}
}

// expect records that a member of the group is not placed, and settle that it is.
func (f *fleet) expect(member string) {
	h := f.had[member]
	for _, i := range h.gpus {
		f.devices[i].due += h.claim.takes(&f.devices[i])
	}
}

func (f *fleet) settle(member string) {
	h := f.had[member]
	for _, i := range h.gpus {
		f.devices[i].due -= h.claim.takes(&f.devices[i])
	}
}

// free returns how many slots of a device are left if this much of its memory is taken.
func (p *pool) free(i int, taken int64) int {
	switch {
	case taken == 0 || p.slots[i] == 0:
		return p.slots[i]
	case p.exclusive:
		return 0
	default:
		return max(p.slots[i]-int((taken+p.size-1)/p.size), 0)
	}
}

// most returns the largest number of slots that the pool has on a site.
func (p *pool) most() int {
	most := 0
	for _, devices := range p.bySite {
		slots := 0
		for _, i := range devices {
			slots += p.slots[i]
		}
		most = max(most, slots)
	}
	return most
}
