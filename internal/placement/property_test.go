package placement

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// drawInput draws small clusters under pressure: shared addresses, few labels, requests that fill hosts, another group,
// and current assignments, some of them no longer allowed.
func drawInput(t *rapid.T) Input {
	hosts := map[string]domain.Host{}
	hostNames := []string{"gone"}
	for i := range rapid.IntRange(1, 6).Draw(t, "hosts") {
		name := fmt.Sprintf("h%d", i)
		hostNames = append(hostNames, name)
		hosts[name] = host(
			rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "address"),
			capacity(float64(rapid.IntRange(2, 16).Draw(t, "cpus")), rapid.Int64Range(512, 4096).Draw(t, "memory")),
			rapid.SampledFrom([]string{"gpu=t4", "gpu=v100"}).Draw(t, "label"),
			rapid.SampledFrom([]string{"rack=x", "rack=y", "rack=z", "row=1"}).Draw(t, "rack"),
		)
	}
	roles := map[string]role{}
	for i := range rapid.IntRange(1, 4).Draw(t, "roles") {
		r := role{n: rapid.IntRange(0, 6).Draw(t, "replicas")}
		r.Resources = requests(float64(rapid.IntRange(0, 20).Draw(t, "tenths"))/10,
			rapid.Int64Range(0, 512).Draw(t, "mib"))
		r.Placement.Strategy = rapid.SampledFrom(append([]domain.Strategy{""}, domain.Strategies...)).Draw(t,
			"strategy")
		r.Placement.SpreadBy = rapid.SampledFrom([]string{"", "rack", "gpu"}).Draw(t, "spread by")
		if rapid.IntRange(0, 3).Draw(t, "labelled") == 0 {
			r.Placement.Labels = map[string]string{"gpu": "v100"}
		}
		if rapid.IntRange(0, 3).Draw(t, "published") == 0 {
			r.Template = publishing(rapid.SampledFrom([]string{"8080/tcp", "8080/udp", "9090/tcp"}).Draw(t,
				"published port")).Template
		}
		if rapid.IntRange(0, 3).Draw(t, "named") == 0 {
			r.Placement.Hosts = rapid.SliceOfN(rapid.SampledFrom(hostNames[1:]), 1, 3).Draw(t, "named hosts")
		}
		if rapid.Bool().Draw(t, "fixed") {
			port := rapid.SampledFrom([]int{8000, 8004, 9000, 20000, 20002}).Draw(t, "port")
			r.Port = &port
		}
		roles[fmt.Sprintf("r%d", i)] = r
	}
	in := input(hosts, roles)
	in.SharedAddress = rapid.Bool().Draw(t, "shared")

	assignment := rapid.Custom(func(t *rapid.T) domain.Assignment {
		return domain.Assignment{
			Host: rapid.SampledFrom(hostNames).Draw(t, "host"), Port: rapid.IntRange(20000, 20010).Draw(t, "port"),
		}
	})
	in.Current = map[string]domain.Assignment{}
	for _, m := range in.Members {
		if rapid.Bool().Draw(t, "placed") {
			in.Current[m.Name] = assignment.Draw(t, "current")
		}
	}
	in.Groups = map[string]domain.GroupDocument{
		"old-1": other(resources(0.3, 100), rapid.SliceOfN(assignment, 0, 4).Draw(t, "others")...),
	}
	// What the group requested so far; some roles have grown since.
	before := domain.Group{Roles: map[string]domain.Role{}}
	for name, r := range in.Group.Roles {
		if rapid.Bool().Draw(t, "as before") {
			before.Roles[name] = r
		}
	}
	in.Groups["m"] = domain.GroupDocument{Spec: before}
	in.Closed, in.Reserved = map[string]string{}, map[string]domain.Resources{}
	for _, name := range hostNames[1:] {
		if rapid.IntRange(0, 3).Draw(t, "closed") == 0 {
			in.Closed[name] = "host " + name + " is down"
		}
		if rapid.Bool().Draw(t, "shared") {
			in.Reserved[name] = resources(float64(rapid.IntRange(0, 8).Draw(t, "reserved cpus")),
				rapid.Int64Range(0, 2048).Draw(t, "reserved mib"))
		}
	}
	in.BusyPorts = map[string][]int{}
	for _, address := range []string{"x", "y"} {
		in.BusyPorts[address] = rapid.SliceOfN(rapid.IntRange(20000, 20010), 0, 3).Draw(t, "busy")
	}
	return in
}

func TestPlaceProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		got, ps := Place(in)

		shuffled := in
		shuffled.Members = rapid.Permutation(in.Members).Draw(t, "permutation")
		again, psAgain := Place(shuffled)
		if diff := cmp.Diff(got, again) + cmp.Diff(ps, psAgain); diff != "" {
			t.Fatalf("not deterministic:\n%s", diff)
		}
		if ps.Err() != nil {
			if got != nil {
				t.Fatalf("assignments %v beside problems", got)
			}
			return
		}
		checkResult(t, in, got)
		checkSpread(t, in, got)

		in.Current = got
		in.Groups["m"] = domain.GroupDocument{Spec: in.Group, Assignments: got}
		in.BusyPorts = addListening(in, got)
		kept, ps := Place(in)
		if err := ps.Err(); err != nil {
			t.Fatalf("placing again: %v", err)
		}
		if diff := cmp.Diff(got, kept); diff != "" {
			t.Fatalf("not sticky:\n%s", diff)
		}
	})
}

// TestPlaceIgnoresTheOrderOfMaps checks that problems do not depend on map order, if two members of another group both
// hold a port.
func TestPlaceIgnoresTheOrderOfMaps(t *testing.T) {
	in := input(local(), map[string]role{"w": {portOf(9000), 1}})
	in.SharedAddress = true
	taken := domain.Assignment{Host: "local", Port: 9000}
	in.Groups = map[string]domain.GroupDocument{"old-1": other(domain.Resources{}, taken, taken, taken, taken)}
	_, want := Place(in)
	for range 100 {
		if _, got := Place(in); !cmp.Equal(want, got) {
			t.Fatalf("one input, two results:\n%v\n%v", want.Err(), got.Err())
		}
	}
}

// checkResult checks assignments against the rules, counting independently.
func checkResult(t *rapid.T, in Input, got map[string]domain.Assignment) {
	if len(got) != len(in.Members) {
		t.Fatalf("%d assignments for %d members", len(got), len(in.Members))
	}
	used := map[string]domain.Resources{}
	listeners := map[string][]string{}
	add := func(member string, r domain.Resources, a domain.Assignment) {
		used[a.Host] = resources(used[a.Host].CPUs+r.CPUs, used[a.Host].MemoryMiB+r.MemoryMiB)
		at := fmt.Sprintf("%s:%d", in.Hosts[a.Host].Address, a.Port)
		listeners[at] = append(listeners[at], member)
	}
	for _, a := range in.Groups["old-1"].Assignments {
		if _, found := in.Hosts[a.Host]; found {
			add("old", in.Groups["old-1"].Spec.Roles["w-x"].Resources.Requests(), a)
		}
	}
	perHost := map[[2]string]int{}
	entered := map[string]domain.Resources{}
	for _, m := range in.Members {
		a, spec := got[m.Name], in.Group.Roles[m.Role]
		h, found := in.Hosts[a.Host]
		if !found {
			t.Fatalf("%s is on host %q, which is not there", m.Name, a.Host)
		}
		add(m.Name, spec.Resources.Requests(), a)
		for key, value := range spec.Placement.Labels {
			if h.Labels[key] != value {
				t.Fatalf("%s is on host %s without label %s", m.Name, a.Host, key)
			}
		}
		if len(spec.Placement.Hosts) > 0 && !slices.Contains(spec.Placement.Hosts, a.Host) {
			t.Fatalf("%s is on host %s, and may be on %v", m.Name, a.Host, spec.Placement.Hosts)
		}
		came := in.Current[m.Name].Host != a.Host
		if _, closed := in.Closed[a.Host]; closed && came {
			t.Fatalf("%s was placed on host %s, which is closed", m.Name, a.Host)
		}
		had := in.Groups["m"].Spec.Roles[m.Role].Resources
		if r := spec.Resources.Requests(); came || r.CPUs > had.CPUs || r.MemoryMiB > had.MemoryMiB {
			entered[a.Host] = resources(entered[a.Host].CPUs+r.CPUs, entered[a.Host].MemoryMiB+r.MemoryMiB)
		}
		perHost[[2]string{m.Role, a.Host}]++
		if spec.Placement.Strategy == domain.OnePerHost && perHost[[2]string{m.Role, a.Host}] > 1 {
			t.Fatalf("two members of role %s are on host %s", m.Role, a.Host)
		}
		for port := range containerPorts(spec) {
			if publishedBy := perHost[[2]string{port, a.Host}]; !in.SharedAddress && publishedBy > 0 {
				t.Fatalf("two members publish %s on host %s", port, a.Host)
			}
			perHost[[2]string{port, a.Host}]++
		}
		if in.SharedAddress && slices.Contains(in.BusyPorts[h.Address], a.Port) && !isCurrent(in, h.Address, a.Port) {
			t.Fatalf("%s got port %d at %s, which is busy", m.Name, a.Port, h.Address)
		}
	}
	for name, u := range used {
		c := in.Hosts[name].Capacity
		if entered[name].CPUs > 0 {
			u.CPUs += in.Reserved[name].CPUs
		}
		if entered[name].MemoryMiB > 0 {
			u.MemoryMiB += in.Reserved[name].MemoryMiB
		}
		if u.CPUs > c.CPUs+1e-5 || u.MemoryMiB > c.MemoryMiB {
			t.Fatalf("host %s: %v used of %v", name, u, c)
		}
	}
	for at, members := range listeners {
		if in.SharedAddress && len(members) > 1 &&
			slices.ContainsFunc(members, func(m string) bool { return m != "old" }) {
			t.Fatalf("%v all listen at %s", members, at)
		}
	}
}

func containerPorts(r domain.Role) map[string]domain.PublishedPort {
	if r.Container == nil {
		return nil
	}
	return r.Container.Ports // by what they publish, see publishing
}

// isCurrent reports whether the group had a port before.
func isCurrent(in Input, address string, port int) bool {
	for _, a := range in.Current {
		if h, found := in.Hosts[a.Host]; found && h.Address == address && a.Port == port {
			return true
		}
	}
	return false
}

// addListening returns the busy ports once the members run.
func addListening(in Input, got map[string]domain.Assignment) map[string][]int {
	busy := map[string][]int{}
	for address, ports := range in.BusyPorts {
		busy[address] = slices.Clone(ports)
	}
	for _, a := range got {
		address := in.Hosts[a.Host].Address
		busy[address] = append(busy[address], a.Port)
	}
	return busy
}
