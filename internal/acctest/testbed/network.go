//go:build linux

package testbed

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"sync"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Subnet is the network of a bed's nodes. It exists only in the bed's namespaces, so all beds have the same.
var Subnet = netip.MustParsePrefix("10.200.0.0/24")

// gateway is the address in Subnet of the machine that connects the nodes' cables.
var gateway = netip.MustParseAddr("10.200.0.254")

// machineAddress returns the address in Subnet of a machine, given its number from 1.
func machineAddress(number int) netip.Addr {
	octets := Subnet.Addr().As4()
	octets[3] = byte(number) //nolint:gosec // at most maxNodes
	return netip.AddrFrom4(octets)
}

// network connects the nodes of a bed: a bridge in its own network namespace, so that this machine's firewall rules do
// not apply. It lasts at most as long as this process.
type network struct {
	links  *netlink.Handle // of the namespace
	bridge int             // its index

	mu        sync.RWMutex
	namespace netns.NsHandle // closed with the network
}

// newNetwork makes the bridge.
func newNetwork() (*network, error) {
	n := &network{namespace: netns.None()}
	err := keepingNamespace(func() (err error) {
		n.namespace, err = netns.New()
		return err
	})
	if err == nil {
		err = n.lay()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making the network of the nodes: %w", err), n.close())
	}
	return n, nil
}

// lay creates the devices of the namespace.
func (n *network) lay() error {
	var err error
	if n.links, err = netlink.NewHandleAt(n.namespace); err != nil {
		return err
	}
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "nodes"}}
	if err := n.links.LinkAdd(bridge); err != nil {
		return err
	}
	n.bridge = bridge.Index
	return up(n.links, "nodes", gateway)
}

// plug connects a new node, given its init's PID. With cut, the cable carries nothing yet.
func (n *network) plug(name string, init int, address netip.Addr, cut bool) error {
	if err := n.unplug(name); err != nil {
		return err
	}
	number := address.As4()
	cable := &netlink.Veth{
		LinkAttrs:     netlink.LinkAttrs{Name: name, MasterIndex: n.bridge},
		PeerName:      "eth0",
		PeerNamespace: netlink.NsPid(init),
		// A node that reboots keeps its hardware address.
		PeerHardwareAddr: append(net.HardwareAddr{0x02, 0x42}, number[:]...),
	}
	if err := n.links.LinkAdd(cable); err != nil {
		return fmt.Errorf("adding the cable of %s: %w", name, err)
	}
	if err := n.connect(name, !cut); err != nil {
		return err
	}
	namespace, err := netns.GetFromPid(init)
	if err != nil {
		return err
	}
	defer namespace.Close()
	links, err := netlink.NewHandleAt(namespace)
	if err != nil {
		return err
	}
	defer links.Close()
	return up(links, "eth0", address)
}

// up brings a device and the loopback device up, and gives the device its address.
func up(links *netlink.Handle, name string, address netip.Addr) error {
	for _, device := range []string{"lo", name} {
		link, err := links.LinkByName(device)
		if err != nil {
			return err
		}
		if device == name {
			ip := &net.IPNet{IP: address.AsSlice(), Mask: net.CIDRMask(Subnet.Bits(), address.BitLen())}
			if err := links.AddrAdd(link, &netlink.Addr{IPNet: ip}); err != nil {
				return err
			}
		}
		if err := links.LinkSetUp(link); err != nil {
			return err
		}
	}
	return nil
}

// unplug removes a node's cable if it exists: that of a crashed node disappears by itself.
func (n *network) unplug(name string) error {
	link, err := n.links.LinkByName(name)
	if _, absent := errors.AsType[netlink.LinkNotFoundError](err); absent {
		return nil
	}
	if err != nil {
		return err
	}
	if err := n.links.LinkDel(link); !errors.Is(err, unix.ENODEV) {
		return err
	}
	return nil
}

// connect makes a node's cable carry traffic, or not.
func (n *network) connect(name string, on bool) error {
	link, err := n.links.LinkByName(name)
	if err != nil {
		return fmt.Errorf("the cable of %s: %w", name, err)
	}
	if on {
		return n.links.LinkSetUp(link)
	}
	return n.links.LinkSetDown(link)
}

// dial connects to an address from the bridge. The host has to be an IP address.
func (n *network) dial(ctx context.Context, proto, address string) (connection net.Conn, err error) {
	err = n.within(func() (err error) {
		connection, err = (&net.Dialer{}).DialContext(ctx, proto, address)
		return err
	})
	return connection, err
}

// listen listens on a port of the bridge.
func (n *network) listen(port int) (listener net.Listener, err error) {
	err = n.within(func() (err error) {
		listener, err = net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(gateway, uint16(port)))) //nolint:gosec // a port
		return err
	})
	return listener, err
}

// within calls do in the network's namespace. Sockets stay in the namespace in which they were created.
func (n *network) within(do func() error) error {
	return keepingNamespace(func() error {
		if err := n.enter(); err != nil {
			return err
		}
		return do()
	})
}

// enter moves the thread into the namespace.
func (n *network) enter() error {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if !n.namespace.IsOpen() {
		return fmt.Errorf("the network of the test bed: %w", net.ErrClosed)
	}
	return netns.Set(n.namespace)
}

// close releases the namespace, and with it everything in it.
func (n *network) close() error {
	if n.links != nil {
		n.links.Close()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.namespace.IsOpen() {
		return nil
	}
	return n.namespace.Close()
}

// keepingNamespace calls do, which changes the thread's network namespace, and changes it back.
func keepingNamespace(do func() error) error {
	runtime.LockOSThread()
	before, err := netns.Get()
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer before.Close()
	result := do()
	if err := netns.Set(before); err != nil {
		// The thread stays locked: it ends with its goroutine, so no other ever runs in the wrong namespace.
		return errors.Join(result, fmt.Errorf("returning to this machine's network: %w", err))
	}
	runtime.UnlockOSThread()
	return result
}
