package nodes

import (
	"encoding/binary"
	"hash/fnv"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/daemons"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

var (
	// subnets is the range from which an undeclared subnet is chosen, and subnetBits its size, a /20. The range lies
	// within 10.0.0.0/8, from which a Swarm takes subnets by default, but far above those that it takes first; subnets
	// in use are skipped.
	subnets = netip.MustParsePrefix("10.64.0.0/10")
	// hostBits is the assumed prefix length of the network around a host's address, as nobody reports it.
	hostBits = 16
)

const subnetBits = 20

// unusable is the number of addresses of a subnet that nobody gets: the network's, the gateway's, and the last one.
const unusable = 3

// addressRoom returns for how many members a subnet has addresses. The controller takes one; each node takes one
// itself, and one for its agent.
func addressRoom(subnet netip.Prefix, nodes int) int {
	const controller, perNode = 1, 2
	return 1<<(subnet.Addr().BitLen()-subnet.Bits()) - unusable - controller - perNode*nodes
}

// reserved is a range of addresses in use, and what uses it.
type reserved struct {
	prefix netip.Prefix
	by     string
}

// reservations returns the ranges in use among the hosts, except the cluster's own network.
func (f *facts) reservations(cluster domain.Cluster) []reserved {
	taken := rangesOf(f.networks, cluster.Name, "")
	taken = append(taken, f.joining(cluster)...)
	for _, name := range slices.Sorted(maps.Keys(f.inside)) {
		taken = append(taken, rangesOf(f.inside[name].networks, cluster.Name, " of host "+name)...)
	}
	addresses := f.addresses(cluster.Hosts)
	for _, name := range slices.Sorted(maps.Keys(addresses)) {
		if address := addresses[name]; address.Is4() {
			taken = append(taken, reserved{netip.PrefixFrom(address, address.BitLen()), "the address of host " + name})
		}
	}
	return taken
}

// rangesOf returns the ranges of networks other than the cluster's.
func rangesOf(networks []network.Summary, cluster, where string) []reserved {
	var taken []reserved
	for _, n := range networks {
		if dockerapi.IsSwarmNetwork(n, spec.NetworkName(cluster)) {
			continue
		}
		for _, config := range n.IPAM.Config {
			if prefix, err := netip.ParsePrefix(config.Subnet); err == nil {
				taken = append(taken, reserved{prefix, "network " + n.Name + where})
			}
		}
	}
	return taken
}

// chooseSubnet returns a free subnet of the range for a cluster's network, or false if none is free. Where the search
// begins, and how it goes on, depends on the cluster's name: clusters of one plan, which can't see each other's choice,
// then usually choose different ones.
func chooseSubnet(cluster string, taken []reserved) (netip.Prefix, bool) {
	free := func(subnet netip.Prefix) bool {
		return !slices.ContainsFunc(taken, func(r reserved) bool {
			around := r.prefix
			if around.IsSingleIP() {
				around = netip.PrefixFrom(around.Addr(), hostBits).Masked()
			}
			return around.Overlaps(subnet)
		})
	}
	count := uint32(1) << (subnetBits - subnets.Bits())
	name := fnv.New32a()
	_, _ = name.Write([]byte(cluster))
	first, stride := name.Sum32(), name.Sum32()/count|1 // an odd stride reaches all places, as count is a power of two
	for i := range count {
		if subnet := subnetAt((first + i*stride) % count); free(subnet) {
			return subnet, true
		}
	}
	return netip.Prefix{}, false
}

// subnetAt returns a subnet of the range by its place, from 0.
func subnetAt(place uint32) netip.Prefix {
	address := subnets.Addr().As4()
	binary.BigEndian.PutUint32(address[:],
		binary.BigEndian.Uint32(address[:])+place<<(subnets.Addr().BitLen()-subnetBits))
	return netip.PrefixFrom(netip.AddrFrom4(address), subnetBits)
}

// networkOptions are the options with which a cluster's network is created.
func networkOptions(cluster string, want domain.Network) network.CreateOptions {
	options := network.CreateOptions{
		Driver: "overlay", Scope: "swarm", Attachable: want.Attachable,
		IPAM:   &network.IPAM{Driver: "default", Config: []network.IPAMConfig{{Subnet: want.Subnet}}},
		Labels: map[string]string{spec.LabelCluster: cluster},
	}
	if want.Encrypted {
		options.Options = map[string]string{dockerapi.EncryptedOption: ""}
	}
	return options
}

// connect completes the cluster's network, and adds the steps that create it. A network that matches the specification
// is left alone; otherwise it is recreated, as Docker networks can't be changed.
func (p *plan) connect(f *facts) {
	var want domain.Network
	if p.cluster.Network != nil {
		want = *p.cluster.Network
	}
	declared := want.Subnet != ""
	live, exists := dockerapi.OwnNetwork(f.networks, p.cluster.Name)
	if !exists && slices.ContainsFunc(f.networks, func(n network.Summary) bool {
		return n.Name == spec.NetworkName(p.cluster.Name) && n.Labels[spec.LabelCluster] != p.cluster.Name
	}) {
		p.problems.Add(domain.Path{"network"}, "Network already exists",
			"a manager has a network %q that is not Trainyard's: remove it, or rename the cluster",
			spec.NetworkName(p.cluster.Name))
		return
	}
	taken := f.reservations(p.cluster)
	is := dockerapi.ReadNetwork(live)
	if !declared {
		want.Subnet = p.undeclaredSubnet(f, is.Subnet, taken)
	}
	p.cluster.Network = &want
	subnet, err := netip.ParsePrefix(want.Subnet)
	path := domain.Path{"network", "subnet"}
	switch {
	case want.Subnet == "":
		p.problems.Add(path, "No free subnet", "no /%d of %s is free: networks and hosts use %s. Set a subnet that is",
			subnetBits, subnets, enumerate(taken))
	case err != nil, subnet != subnet.Masked():
		return // reported by [domain.Cluster.Validate]
	case !subnet.Addr().Is4():
		p.problems.Add(path, "Invalid subnet", "%q is not an IPv4 range; members communicate over IPv4", want.Subnet)
	case addressRoom(subnet, p.nodes(f)) < 1:
		p.problems.Add(path, "Subnet too small",
			"%s has %d addresses, which leaves none for members: the network itself takes %d, the controller one, "+
				"and each of the %d nodes two; a /%d has room for %d members",

			want.Subnet, 1<<(subnet.Addr().BitLen()-subnet.Bits()), unusable, p.nodes(f), subnetBits,
			addressRoom(netip.PrefixFrom(subnet.Addr(), subnetBits), p.nodes(f)))
	case !exists || is.Subnet != want.Subnet:
		checkOverlap(&p.problems, path, subnet, taken)
	default:
		checkOverlap(&p.problems, path, subnet, f.joining(p.cluster))
	}
	if !exists {
		p.steps = append(p.steps, step{do: createNetwork, network: want})
	} else if is != want {
		p.steps = append(p.steps, step{do: removeNetwork, network: want}, step{do: createNetwork, network: want})
	}
}

// undeclaredSubnet returns the subnet of a network for which none is declared: the one that it has or had, or else a
// free one; "" if none is free.
func (p *plan) undeclaredSubnet(f *facts, live string, taken []reserved) string {
	if live != "" {
		return live
	}
	if stored := f.stored.Network; stored != nil && stored.Subnet != "" {
		subnet, err := netip.ParsePrefix(stored.Subnet)
		overlaps := func(r reserved) bool { return r.prefix.Overlaps(subnet) }
		if err == nil && !slices.ContainsFunc(taken, overlaps) {
			return stored.Subnet
		}
	}
	chosen, free := chooseSubnet(p.cluster.Name, taken)
	if !free {
		return ""
	}
	return chosen.String()
}

// nodes is how many nodes the Swarm will have.
func (p *plan) nodes(f *facts) int {
	nodes := len(f.nodes)
	for _, s := range p.steps {
		switch s.do {
		case initialise, joinManager, joinWorker:
			nodes++
		case takeOut:
			nodes--
		}
	}
	return nodes
}

// joining returns the ranges in use on hosts that are not nodes yet.
func (f *facts) joining(cluster domain.Cluster) []reserved {
	var taken []reserved
	for _, name := range slices.Sorted(maps.Keys(f.engines)) {
		taken = append(taken, rangesOf(f.engines[name].networks, cluster.Name, " of host "+name)...)
	}
	return taken
}

// checkOverlap adds a problem if a subnet overlaps with a range in use.
func checkOverlap(ps *domain.Problems, path domain.Path, subnet netip.Prefix, taken []reserved) {
	for _, r := range taken {
		if r.prefix.Overlaps(subnet) {
			what := r.by
			if !r.prefix.IsSingleIP() {
				what += " (" + r.prefix.String() + ")"
			}
			ps.Add(path, "Subnet in use",
				"%s overlaps with %s: choose another subnet, or omit it to have a free one chosen", subnet, what)
			return
		}
	}
}

func enumerate(taken []reserved) string {
	var names []string
	for _, r := range taken {
		names = append(names, r.prefix.String())
	}
	return domain.Enumerate(names)
}

// checkUnused adds a problem if services use a network that has to be recreated. The controller and the agents don't
// count, as they are stopped first.
func (p *plan) checkUnused(live network.Summary, services []swarm.Service) {
	users := map[string]bool{}
	for _, service := range services {
		id := spec.IdentityOf(service)
		if !uses(service, live) || daemons.IsResident(service, p.cluster.Name) {
			continue
		}
		if id.Cluster == p.cluster.Name && id.Group != "" {
			users["group "+id.Group] = true
		} else {
			users["service "+service.Spec.Name] = true
		}
	}
	if len(users) == 0 {
		return
	}
	i := slices.IndexFunc(p.steps, func(s step) bool { return s.do == createNetwork })
	p.problems.Add(domain.Path{"network"}, "Network in use",
		"network %s (%s) would have to be recreated (%s), as Docker can't change networks, but is in use by %s: "+
			"destroy or stop them first",
		live.Name, describeNetwork(dockerapi.ReadNetwork(live)), describeNetwork(p.steps[i].network),
		domain.Enumerate(slices.Collect(maps.Keys(users))))
}

func describeNetwork(n domain.Network) string {
	words := []string{n.Subnet}
	if n.Encrypted {
		words = append(words, "encrypted")
	}
	if n.Attachable {
		words = append(words, "attachable")
	}
	return strings.Join(words, ", ")
}

// uses reports whether a service is attached to a network.
func uses(service swarm.Service, n network.Summary) bool {
	attached := slices.Concat(service.Spec.TaskTemplate.Networks, service.Spec.Networks) //nolint:staticcheck // others' services may still use the old field
	return slices.ContainsFunc(attached,
		func(a swarm.NetworkAttachmentConfig) bool { return a.Target == n.ID || a.Target == n.Name })
}
