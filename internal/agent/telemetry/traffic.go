//go:build linux

package telemetry

import (
	"cmp"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/proctree"
)

// counted are numbers of bytes received and sent.
type counted struct{ received, sent float64 }

// traffic is what an instance received and sent since it started, or why that is unknown.
type traffic struct {
	counted

	// in is the namespace whose interfaces counted it. If systemd did, rates are set instead.
	in      space
	rates   *counted
	unknown string
}

// Why an instance's traffic is unknown.
const (
	onHostNetwork = "it shares the network of its host, where traffic is counted only for systemd units, with " +
		"control groups v2"
	onSharedNetwork = "it shares its network with others"
)

// space identifies a network namespace by the inode of its table of interfaces, which is unique. An agent without
// capabilities can't read the namespace itself.
type space uint64

// network is the namespace of an instance, and the traffic through it, which is not counted for the host's.
type network struct {
	counted

	space space
	// by is the process that is in it.
	by    identity
	fault string
}

// readNetworks returns the networks of instances. Those that were in the host's namespace at an earlier reading still
// are.
func (s Settings) readNetworks(
	fs procfs.FS, instances map[string][]proctree.Process, host space, earlier map[string]network,
) map[string]network {
	networks := make(map[string]network, len(instances))
	for id, processes := range instances {
		if before, known := earlier[id]; known && before.space == host && len(processes) > 0 &&
			before.by == identify(processes[0]) {
			networks[id] = before
			continue
		}
		networks[id] = s.readNetworkOf(fs, processes, host)
	}
	return networks
}

// readNetworkOf returns the network of an instance, which is that of its first process.
func (s Settings) readNetworkOf(fs procfs.FS, processes []proctree.Process, host space) network {
	n := network{fault: "its processes have just exited"}
	for _, p := range processes {
		in, err := spaceOf(s.Proc, strconv.Itoa(p.PID))
		if err == nil && in != host {
			n.counted, err = countInterfaces(fs, p.PID, loopback.MatchString)
		}
		if err != nil {
			n.fault = err.Error()
			continue // it may have ended
		}
		n.space, n.by, n.fault = in, identify(p), ""
		return n
	}
	return n
}

// spaceOf returns the namespace of a process, "self" for this one; 0 if it can't be determined.
func spaceOf(proc, process string) (space, error) {
	name := filepath.Join(proc, process, "net/dev")
	var stat unix.Stat_t
	if err := unix.Stat(name, &stat); err != nil {
		return 0, &os.PathError{Op: "stat", Path: name, Err: err}
	}
	return space(stat.Ino), nil
}

// inner are the interfaces for traffic within a host and with its containers, and those on top of others: their traffic
// does not count, or is counted where it leaves the host. In a container that is only the loopback.
var (
	inner = regexp.MustCompile(
		`^(lo|veth.*|docker.*|podman.*|br-.*|br[0-9]+|virbr.*|vmbr[0-9]+|vnet.*|cni.*|cali.*|flannel.*|` +
			`vxlan.*|tap.*|tun.*|wg.*|tailscale.*|bond[0-9]+|team[0-9]+|vlan[0-9]+|.+[.][0-9]+)$`,
	)
	loopback = regexp.MustCompile(`^lo$`)
)

// inner returns which interfaces of the host are inner ones, with its bonds and VLANs, whatever their names are.
func (s Settings) inner() func(name string) bool {
	onOthers := map[string]bool{}
	for _, kind := range []string{"bonding", "vlan"} {
		entries, _ := os.ReadDir(filepath.Join(s.Proc, "1/net", kind)) // there is none unless there are such interfaces
		for _, entry := range entries {
			onOthers[entry.Name()] = true
		}
	}
	return func(name string) bool { return onOthers[name] || inner.MatchString(name) }
}

// countInterfaces returns the traffic through the interfaces that a process sees, except some, or except the loopback
// if there are no others, as in a rootless container; NaN if they can't be read.
func countInterfaces(fs procfs.FS, pid int, but func(name string) bool) (sum counted, err error) {
	process, err := fs.Proc(pid)
	if err != nil {
		return counted{math.NaN(), math.NaN()}, err
	}
	interfaces, err := process.NetDev()
	if err != nil {
		return counted{math.NaN(), math.NaN()}, err
	}
	if !slices.ContainsFunc(slices.Collect(maps.Keys(interfaces)), func(name string) bool { return !but(name) }) {
		but = loopback.MatchString
	}
	for name, through := range interfaces {
		if !but(name) {
			sum.received += float64(through.RxBytes)
			sum.sent += float64(through.TxBytes)
		}
	}
	return sum, nil
}

// readTraffic returns the networks of instances, and their traffic.
func (s Settings) readTraffic(
	fs procfs.FS, instances map[string][]proctree.Process, earlier map[string]network, inUnits unitLook,
) (map[string]network, map[string]traffic) {
	if len(instances) == 0 {
		return nil, nil
	}
	host, errHost := spaceOf(s.Proc, "1")
	own, errOwn := spaceOf(ownProc, "self")
	networks := s.readNetworks(fs, instances, host, earlier)
	return networks, trafficOf(networks, [2]space{host, own}, inUnits, cmp.Or(errHost, errOwn))
}

// trafficOf returns the traffic of instances: that of a network of their own, or systemd's count for a unit. A network
// is not an instance's own if the host's first process or this program is in it; err is why these are unknown.
func trafficOf(networks map[string]network, others [2]space, inUnits unitLook, err error) map[string]traffic {
	host := others[0]
	users := map[space]int{}
	for _, other := range others {
		users[other]++
	}
	for _, n := range networks {
		users[n.space]++
	}
	byInstance := make(map[string]traffic, len(networks))
	for id, n := range networks {
		unit, isUnit := inUnits.of(id)
		switch {
		case isUnit:
			byInstance[id] = unit
		case n.fault != "":
			byInstance[id] = traffic{unknown: n.fault}
		case err != nil:
			byInstance[id] = traffic{unknown: err.Error()}
		case n.space == host && inUnits.err != nil:
			byInstance[id] = traffic{unknown: inUnits.err.Error()}
		case n.space == host:
			byInstance[id] = traffic{unknown: onHostNetwork}
		case users[n.space] > 1:
			byInstance[id] = traffic{unknown: onSharedNetwork}
		default:
			byInstance[id] = traffic{counted: n.counted, in: n.space}
		}
	}
	return byInstance
}

// rates returns the bytes per second that an instance received and sent between two readings; NaN if one of them is
// unknown, or was counted elsewhere.
func rates(first, second traffic, elapsed time.Duration) (received, sent float64) {
	switch {
	case second.rates != nil:
		return second.rates.received, second.rates.sent
	case first.unknown != "" || second.unknown != "" || first.in != second.in:
		return math.NaN(), math.NaN()
	}
	return rate(first.received, second.received, elapsed), rate(first.sent, second.sent, elapsed)
}

// rate returns the increase of a counter per second. When an interface is removed, its count is lost.
func rate(first, second float64, elapsed time.Duration) float64 {
	return max(second-first, 0) / elapsed.Seconds()
}
