package placement

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// drawGPUs draws small clusters with scarce devices: two pools, of which one may have slots, on hosts with few CPUs,
// other groups that hold some devices, lost, busy and closed devices, and roles that ask for one device or more.
func drawGPUs(t *rapid.T, mostDevices int) Input {
	hosts := map[string]domain.Host{}
	var hostNames []string
	for i := range rapid.IntRange(1, 3).Draw(t, "hosts") {
		hostNames = append(hostNames, fmt.Sprintf("h%d", i))
		hosts[hostNames[i]] = host("x", capacity(float64(rapid.IntRange(3, 8).Draw(t, "cpus")), 4096),
			rapid.SampledFrom([]string{"rack=x", "rack=y"}).Draw(t, "rack"))
	}
	pools := map[string]domain.GPUPoolDocument{}
	states := map[string]DeviceState{}
	var uuids []string
	for _, name := range []string{"p", "q"} {
		spec := domain.GPUPool{
			Strategy: rapid.SampledFrom([]domain.Strategy{"", domain.Spread, domain.Pack}).Draw(t, "strategy"),
			OnForeignProcess: rapid.SampledFrom(append([]domain.ForeignProcess{""}, domain.ForeignProcesses...)).Draw(t,
				"rule"),
		}
		if rapid.Bool().Draw(t, "slots") {
			spec.Sharing, spec.MemoryMiBPerSlot = domain.Slots,
				rapid.SampledFrom([]int64{1000, 700}).Draw(t, "mib of a slot")
			spec.ReservePercent = rapid.Ptr(rapid.SampledFrom([]float64{0, 7, 40}), true).Draw(t, "reserve")
		}
		devices := map[string][]domain.Device{}
		for _, h := range hostNames {
			for range rapid.IntRange(0, 3).Draw(t, "devices") {
				uuid := fmt.Sprintf("%s-%d", name, len(uuids))
				node := rapid.IntRange(0, 1).Draw(t, "node")
				d := domain.Device{UUID: uuid, MemoryMiB: rapid.Int64Range(1100, 6000).Draw(t, "mib"), NUMANode: &node}
				for _, other := range devices[h] {
					if rapid.Bool().Draw(t, "linked") {
						d.Links = append(d.Links, other.UUID)
					}
				}
				devices[h] = append(devices[h], d)
				uuids = append(uuids, uuid)
				switch rapid.IntRange(0, 9).Draw(t, "state") {
				case 0:
					states[uuid] = DeviceState{Lost: "fallen off the bus (XID 79)"}
				case 1:
					states[uuid] = DeviceState{Busy: "python (process 4711)"}
				case 2:
					states[uuid] = DeviceState{Closed: "nothing is known of it"}
				}
			}
		}
		pools[name] = pooled(spec, devices)
	}
	request := rapid.Custom(func(t *rapid.T) *domain.GPURequest {
		if rapid.IntRange(0, 4).Draw(t, "none") == 0 {
			return nil
		}
		return &domain.GPURequest{
			Pool:      rapid.SampledFrom([]string{"p", "p", "q"}).Draw(t, "pool"),
			Count:     rapid.Ptr(rapid.IntRange(1, mostDevices), true).Draw(t, "count"),
			MemoryMiB: rapid.SampledFrom([]int64{0, 1, 1000, 1001, 1400, 2000, 3000, 4000}).Draw(t, "mib of a member"),
		}
	})
	roles := map[string]role{}
	for i := range rapid.IntRange(1, 3).Draw(t, "roles") {
		r := role{n: rapid.IntRange(0, 3).Draw(t, "replicas")}
		r.GPUs = request.Draw(t, "gpus")
		r.Resources = requests(float64(rapid.IntRange(0, 2).Draw(t, "cpus of a member")), 0)
		r.Placement.Strategy = rapid.SampledFrom(append([]domain.Strategy{""}, domain.Strategies...)).Draw(t,
			"placement")
		r.Placement.SpreadBy = rapid.SampledFrom([]string{"", "rack"}).Draw(t, "spread by")
		if rapid.IntRange(0, 3).Draw(t, "named") == 0 {
			r.Placement.Hosts = rapid.SliceOfN(rapid.SampledFrom(hostNames), 1, 2).Draw(t, "named hosts")
		}
		roles[fmt.Sprintf("r%d", i)] = r
	}
	in := input(hosts, roles)
	in.Pools, in.Devices = pools, states

	assignment := rapid.Custom(func(t *rapid.T) domain.Assignment {
		a := domain.Assignment{Host: rapid.SampledFrom(append(hostNames, "gone")).Draw(t, "host"), Port: firstFreePort}
		if len(uuids) > 0 {
			a.GPUs = domain.NewDeviceSet(rapid.SliceOfNDistinct(rapid.SampledFrom(append(uuids, "left")), 0, 2,
				rapid.ID).Draw(t, "had")...)
		}
		return a
	})
	in.Current, in.Staying = map[string]domain.Assignment{}, map[string]bool{}
	for _, m := range in.Members {
		if rapid.IntRange(0, 2).Draw(t, "placed") == 0 {
			in.Current[m.Name] = assignment.Draw(t, "current")
			in.Staying[m.Name] = rapid.Bool().Draw(t, "staying")
		}
	}
	old := other(domain.Resources{}, rapid.SliceOfN(assignment, 0, 2).Draw(t, "others")...)
	old.Spec.Roles["w-x"] = domain.Role{GPUs: request.Draw(t, "gpus of others")}
	in.Groups = map[string]domain.GroupDocument{
		"old-1": old,
		"m": {
			Spec:        domain.Group{Roles: map[string]domain.Role{"r0": {GPUs: request.Draw(t, "gpus before")}}},
			Assignments: in.Current,
		},
	}
	return in
}

func TestPlaceGPUsProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawGPUs(t, 3)
		got, ps := Place(in)

		shuffled := in
		shuffled.Members = rapid.Permutation(in.Members).Draw(t, "permutation")
		again, psAgain := Place(shuffled)
		if diff := cmp.Diff(got, again) + cmp.Diff(ps, psAgain); diff != "" {
			t.Fatalf("not deterministic:\n%s", diff)
		}
		shuffled.Group.Roles = maps.Clone(in.Group.Roles)
		for name, role := range shuffled.Group.Roles {
			role.Placement.Hosts = slices.Clone(role.Placement.Hosts)
			slices.Reverse(role.Placement.Hosts)
			shuffled.Group.Roles[name] = role
		}
		again, _ = Place(shuffled) // problems name the hosts in their order
		if diff := cmp.Diff(got, again); diff != "" {
			t.Fatalf("the order of a role's hosts matters:\n%s", diff)
		}
		if ps.Err() != nil {
			if got != nil {
				t.Fatalf("assignments %v beside problems", got)
			}
			return
		}
		checkGPUs(t, in, got)

		in.Current = got
		in.Groups["m"] = domain.GroupDocument{Spec: in.Group, Assignments: got}
		kept, ps := Place(in)
		if len(ps) > 0 {
			t.Fatalf("placing again: %v", ps)
		}
		if diff := cmp.Diff(got, kept); diff != "" {
			t.Fatalf("not stable:\n%s", diff)
		}
		if len(in.Members) == 0 {
			return
		}

		i := rapid.IntRange(0, len(in.Members)-1).Draw(t, "gone")
		delete(kept, in.Members[i].Name)
		in.Members = slices.Delete(slices.Clone(in.Members), i, i+1)
		fewer, ps := Place(in)
		if diff := cmp.Diff(kept, fewer); diff != "" || len(ps) > 0 {
			t.Fatalf("not stable without member %d: %v\n%s", i, ps, diff)
		}
	})
}

// mibOf returns what a member takes of each of its devices in MiB, computed from the documentation rather than the
// product's own functions: as many slots as hold the requested memory, at least one, or without slots the whole device.
func mibOf(pools map[string]domain.GPUPoolDocument, request *domain.GPURequest, device domain.Device) int64 {
	if request == nil || pools[request.Pool].Spec.Sharing != domain.Slots {
		return device.MemoryMiB
	}
	size := pools[request.Pool].Spec.MemoryMiBPerSlot
	mib := size
	for mib < request.MemoryMiB {
		mib += size
	}
	return mib
}

// holds reports, computed the same way, whether a device of a pool has this much memory, in MiB, in addition to the
// pool's reserve in whole percent, which is 3 by default.
func holds(spec domain.GPUPool, device domain.Device, mib int64) bool {
	percent := int64(3)
	if spec.ReservePercent != nil {
		percent = int64(*spec.ReservePercent)
	}
	if spec.Sharing != domain.Slots {
		percent = 0
	}
	return 100*mib <= (100-percent)*device.MemoryMiB
}

// checkGPUs checks the devices of members against the rules, counting independently.
func checkGPUs(t *rapid.T, in Input, got map[string]domain.Assignment) {
	known := map[string]domain.Device{}
	for _, pool := range in.Pools {
		for _, devices := range pool.Devices {
			for _, device := range devices {
				known[device.UUID] = device
			}
		}
	}
	owners, taken := map[string][]string{}, map[string]int64{} // of devices
	own := func(member string, request *domain.GPURequest, a domain.Assignment) {
		for _, uuid := range a.GPUs.UUIDs() {
			owners[uuid] = append(owners[uuid], member)
			taken[uuid] += mibOf(in.Pools, request, known[uuid])
		}
	}
	for member, a := range in.Groups["old-1"].Assignments {
		own(member, in.Groups["old-1"].Spec.Roles["w-x"].GPUs, a)
	}
	for _, m := range in.Members {
		own(m.Name, in.Group.Roles[m.Role].GPUs, got[m.Name])
	}
	for _, m := range in.Members {
		a, request := got[m.Name], in.Group.Roles[m.Role].GPUs
		devices := a.GPUs.UUIDs()
		if request == nil {
			if len(devices) > 0 {
				t.Fatalf("%s has %v, and asks for none", m.Name, devices)
			}
			continue
		}
		if len(devices) != request.Devices() {
			t.Fatalf("%s has %v, and asks for %d", m.Name, devices, request.Devices())
		}
		pool := in.Pools[request.Pool]
		for i, uuid := range devices {
			at := slices.IndexFunc(pool.Devices[a.Host], func(d domain.Device) bool { return d.UUID == uuid })
			if at < 0 {
				t.Fatalf("%s has %s, which pool %s does not have on host %s", m.Name, uuid, request.Pool, a.Host)
			}
			if slices.Contains(devices[:i], uuid) {
				t.Fatalf("%s has %s twice", m.Name, uuid)
			}
			device, state := pool.Devices[a.Host][at], in.Devices[uuid]
			has := in.Current[m.Name].Host == a.Host && slices.Contains(in.Current[m.Name].GPUs.UUIDs(), uuid)
			switch {
			case state.Lost != "" && (!has || !in.Staying[m.Name]):
				t.Fatalf("%s has %s, which is lost", m.Name, uuid)
			case !has && state.Closed != "":
				t.Fatalf("%s was given %s, which is closed", m.Name, uuid)
			case !has && state.Busy != "" && pool.Spec.ForeignRule() == domain.ForeignAvoid:
				t.Fatalf("%s was given %s, which is busy", m.Name, uuid)
			case device.MemoryMiB < request.MemoryMiB:
				t.Fatalf("%s, which asks for %d MiB, has %v", m.Name, request.MemoryMiB, device)
			case pool.Spec.Sharing != domain.Slots && len(owners[uuid]) > 1:
				t.Fatalf("%v own %v", owners[uuid], device)
			case !holds(pool.Spec, device, taken[uuid]):
				t.Fatalf("%v have %d MiB of %v", owners[uuid], taken[uuid], device)
			}
		}
	}
}

// TestNotEnoughGPUsIsTrue checks that if members ask for one device each and placement fails, there is no solution.
func TestNotEnoughGPUsIsTrue(t *testing.T) {
	refused := 0
	rapid.Check(t, func(t *rapid.T) {
		in := drawGPUs(t, 1)
		if _, ps := Place(in); ps.Err() == nil {
			return
		}
		refused++
		if found := bruteForce(in); found != nil {
			t.Fatalf("refused, though there is %v", found)
		}
	})
	t.Logf("%d refused", refused)
}

// bruteForce places all members that ask for at most one device, as if they were new, by trying everything; nil if
// there is no way.
func bruteForce(in Input) map[string]string {
	taken, cpus, perHost := map[string]int64{}, map[string]float64{}, map[string]int{}
	for _, a := range in.Groups["old-1"].Assignments {
		for _, uuid := range a.GPUs.UUIDs() {
			request := in.Groups["old-1"].Spec.Roles["w-x"].GPUs
			if request != nil && uuid[:1] == request.Pool && in.Pools[request.Pool].Spec.Sharing == domain.Slots {
				taken[uuid] += mibOf(in.Pools, request, domain.Device{})
			} else {
				taken[uuid] += 1 << 40 // what it holds of another pool's device can't be counted in its slots
			}
		}
	}
	found := map[string]string{}
	var try func(members []domain.Member) bool
	try = func(members []domain.Member) bool {
		if len(members) == 0 {
			return true
		}
		m := members[0]
		spec := in.Group.Roles[m.Role]
		for name, h := range in.Hosts {
			key := m.Role + " on " + name
			if len(spec.Placement.Hosts) > 0 && !slices.Contains(spec.Placement.Hosts, name) ||
				spec.Placement.Strategy == domain.OnePerHost && perHost[key] > 0 ||
				cpus[name]+spec.Resources.CPUs > h.Capacity.CPUs {
				continue
			}
			cpus[name] += spec.Resources.CPUs
			perHost[key]++
			if spec.GPUs == nil {
				found[m.Name] = name
				if try(members[1:]) {
					return true
				}
			} else {
				pool := in.Pools[spec.GPUs.Pool]
				for _, d := range pool.Devices[name] {
					state := in.Devices[d.UUID]
					mib := mibOf(in.Pools, spec.GPUs, d)
					if state.Lost+state.Closed != "" ||
						state.Busy != "" && pool.Spec.ForeignRule() == domain.ForeignAvoid ||
						d.MemoryMiB < spec.GPUs.MemoryMiB || !holds(pool.Spec, d, taken[d.UUID]+mib) {
						continue
					}
					taken[d.UUID] += mib
					found[m.Name] = name + ": " + d.UUID
					if try(members[1:]) {
						return true
					}
					taken[d.UUID] -= mib
				}
			}
			cpus[name] -= spec.Resources.CPUs
			perHost[key]--
		}
		delete(found, m.Name)
		return false
	}
	if !try(in.Members) {
		return nil
	}
	return maps.Clone(found)
}

// TestConcurrentGroups checks that groups placed one after the other, each with the documents of those before it, share
// the devices without conflict.
func TestConcurrentGroups(t *testing.T) {
	in := input(plainHosts("a", "b"), map[string]role{"w": {onGPUs(1, 0), 2}})
	in.Pools = map[string]domain.GPUPoolDocument{
		"p": pooled(domain.GPUPool{}, map[string][]domain.Device{"a": gpus("a0", "a1"), "b": gpus("b0", "b1")}),
	}
	in.Groups = map[string]domain.GroupDocument{}
	owners := map[domain.DeviceSet]string{}
	for _, group := range []string{"x", "y", "z"} {
		in.Group.Name = group
		for i := range in.Members {
			in.Members[i].Name = domain.MemberName(group, "w", i)
		}
		got, ps := Place(in)
		if group == "z" {
			if got != nil || ps.Err() == nil {
				t.Errorf("a third group got %v of devices that two groups have", got)
			}
			continue
		}
		for member, a := range got {
			if owners[a.GPUs] != "" {
				t.Errorf("%s and %s both have %s", owners[a.GPUs], member, a.GPUs)
			}
			owners[a.GPUs] = member
		}
		in.Groups[group] = domain.GroupDocument{Spec: in.Group, Assignments: got}
	}
	if len(owners) != 4 {
		t.Errorf("%d devices have owners, want 4: %v", len(owners), owners)
	}
}
