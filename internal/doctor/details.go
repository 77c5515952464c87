package doctor

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/facts"
)

// Details are what a host says of itself beside its [facts.Facts]. What it does not report is zero.
type Details struct {
	// Devices are the PCI addresses of NVIDIA's GPUs, and Models what nvidia-smi calls them. SMIFails is what it says
	// where it fails.
	Devices, Models []string
	SMIFails        string
	Docker          Docker
	// Listeners are who listens on the ports that a Swarm needs, as far as that is known; UDP are those of these ports
	// that are taken by anybody, the kernel included.
	Listeners []Listener
	UDP       []uint16
	Clock     Clock
	NFS       NFS
}

// Docker is what a Docker Engine says of itself.
type Docker struct {
	// Installed is whether there is one, running or not, of this package.
	Installed bool
	Package   string
	// Access is whether the user who logs in may use it without becoming root.
	Access bool
	// Swarm is the state of its node, "" if unknown, and Manager whether it manages a Swarm. SwarmError is what the
	// Engine says of the state error.
	Swarm      string
	Manager    bool
	SwarmError string
	// Runtime is the one of containers that name none.
	Runtime string
	// Root is the folder of its data, where FreeBytes are free; Measured is whether this is known.
	Root      string
	FreeBytes int64
	Measured  bool
}

// Listener is who listens on a port.
type Listener struct {
	Port Port
	// Process is its name, and Unit the service of systemd that it is of, "" for none.
	Process, Unit string
}

// Port is one of a protocol, tcp or udp.
type Port struct {
	Protocol string
	Number   uint16
}

// String returns the port as firewalls write it.
func (p Port) String() string { return strconv.Itoa(int(p.Number)) + "/" + p.Protocol }

// Clock is how the clock of a host is kept right. Known is whether the host reported it.
type Clock struct {
	Known bool
	// NTP is whether a service for it is switched on, Can whether there is one, Synchronised whether it did its work.
	NTP, Can, Synchronised bool
}

// NFS is what a host has of the network file system.
type NFS struct {
	// Mounts are the folders of /etc/fstab that are of NFS.
	Mounts []string
	// Client is whether mount can mount them, NoModule whether the kernel can't.
	Client, NoModule bool
}

// script is passed on standard input, as that of package facts.
//
//go:embed details.sh
var script string

// parse returns the details that the script printed. Values that make no sense are passed over.
func parse(output []byte) (Details, error) {
	lines, err := facts.Answer(output, "details")
	if err != nil {
		return Details{}, err
	}
	var d Details
	for _, line := range lines {
		d.set(line.Key, line.Value)
	}
	slices.Sort(d.UDP)
	d.UDP = slices.Compact(d.UDP)
	return d, nil
}

// most is how many of a kind are kept: no host has more GPUs, mounts or listeners that matter.
const most = 64

func add[T any](list *[]T, item T) {
	if len(*list) < most {
		*list = append(*list, item)
	}
}

func (d *Details) set(key, value string) {
	switch key {
	case "nvidia_device":
		add(&d.Devices, value)
	case "gpu":
		add(&d.Models, value)
	case "nvidia_smi_fails":
		d.SMIFails = value
	case "udp":
		if number, err := strconv.ParseUint(value, 16, 16); err == nil {
			add(&d.UDP, uint16(number))
		}
	case "listener":
		if listener, is := listenerOf(value); is {
			add(&d.Listeners, listener)
		}
	case "clock":
		d.Clock.set(value)
	case "nfs_mount":
		add(&d.NFS.Mounts, value)
	case "nfs_client":
		d.NFS.Client = value == "yes"
	case "nfs_module":
		d.NFS.NoModule = value == "no"
	default:
		d.Docker.set(key, value)
	}
}

func (d *Docker) set(key, value string) {
	switch key {
	case "docker_access":
		d.Access = value == "yes"
	case "docker_installed":
		d.Installed = value == "yes"
	case "docker_package":
		d.Package = value
	case "swarm":
		d.Swarm = value
	case "swarm_manager":
		d.Manager = value == "yes"
	case "swarm_error":
		d.SwarmError = value
	case "docker_runtime":
		d.Runtime = value
	case "docker_root":
		d.Root = value
	case "docker_free":
		d.FreeBytes, d.Measured = facts.FreeBytes(value)
	}
}

// set takes a line of timedatectl in.
func (c *Clock) set(line string) {
	name, value, _ := strings.Cut(line, "=")
	c.Known = true
	switch name {
	case "NTP":
		c.NTP = value == "yes"
	case "CanNTP":
		c.Can = value == "yes"
	case "NTPSynchronized":
		c.Synchronised = value == "yes"
	}
}

// listenerOf returns who listens by a protocol, a port, the name of a process and a unit.
func listenerOf(value string) (Listener, bool) {
	words := strings.Fields(value)
	if len(words) < 3 || words[0] != "tcp" && words[0] != "udp" {
		return Listener{}, false
	}
	number, err := strconv.ParseUint(words[1], 10, 16)
	listener := Listener{Port: Port{words[0], uint16(number)}, Process: words[2]}
	if len(words) == 4 {
		listener.Unit = words[3]
	}
	return listener, err == nil
}
