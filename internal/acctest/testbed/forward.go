//go:build linux

package testbed

import (
	"context"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"
)

// dialLimit is the connect timeout of forwarded connections.
const dialLimit = 10 * time.Second

// forward is a port on this machine's loopback device that leads to a port in the bed's network.
type forward struct {
	listener net.Listener
	done     context.CancelFunc
	running  sync.WaitGroup
}

// forward makes an address in the network reachable from this machine, until the forward is closed.
func (n *network) forward(target netip.AddrPort) (*forward, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	ctx, done := context.WithCancel(context.Background())
	f := &forward{listener: listener, done: done}
	f.running.Go(func() {
		for {
			outer, err := listener.Accept()
			if err != nil {
				return // closed
			}
			f.running.Go(func() { n.carry(ctx, outer, target) })
		}
	})
	return f, nil
}

// carry connects an accepted connection to the target, until both ends are done or the context is.
func (n *network) carry(ctx context.Context, outer net.Conn, target netip.AddrPort) {
	defer outer.Close()
	dial, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	inner, err := n.dial(dial, "tcp", target.String())
	if err != nil {
		return // the client sees its connection end
	}
	defer inner.Close()
	// A machine that lost power never closes its end.
	defer context.AfterFunc(ctx, func() {
		_ = outer.Close()
		_ = inner.Close()
	})()
	join(outer, inner)
}

// String returns the forward's address on this machine.
func (f *forward) String() string { return f.listener.Addr().String() }

// close ends the forward and all its connections.
func (f *forward) close() error {
	f.done()
	err := f.listener.Close()
	f.running.Wait()
	return err
}

// join copies between two connections until both directions have ended.
func join(a, b net.Conn) {
	var copies sync.WaitGroup
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		copies.Go(func() {
			_, _ = io.Copy(way[1], way[0]) // both ends see the error
			if half, can := way[1].(interface{ CloseWrite() error }); can {
				_ = half.CloseWrite()
			}
		})
	}
	copies.Wait()
}
