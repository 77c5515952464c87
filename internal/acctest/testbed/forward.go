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

// dialLimit is how long a forwarded connection may take to come about.
const dialLimit = 10 * time.Second

// forwardTLS makes the engine's TLS port reachable from this machine, on a port of the loopback device, until the
// node is closed.
func (n *Node) forwardTLS() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	n.forward = listener
	target := netip.AddrPortFrom(n.Address, tlsPort).String()
	go func() {
		for {
			outer, err := listener.Accept()
			if err != nil {
				return // closed
			}
			go func() {
				defer outer.Close()
				ctx, cancel := context.WithTimeout(context.Background(), dialLimit)
				defer cancel()
				inner, err := n.bed.DialContext(ctx, "tcp", target)
				if err != nil {
					return // the client sees its connection end
				}
				defer inner.Close()
				join(outer, inner)
			}()
		}
	}()
	return nil
}

// join copies between two connections until both have no more to say.
func join(a, b net.Conn) {
	var copies sync.WaitGroup
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		copies.Go(func() {
			_, _ = io.Copy(way[1], way[0]) // both ends see how it ends
			if half, can := way[1].(interface{ CloseWrite() error }); can {
				_ = half.CloseWrite()
			}
		})
	}
	copies.Wait()
}
