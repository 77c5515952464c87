//go:build linux

package containers

import (
	"context"
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// Listener returns the ID of the process listening on the Engine's socket: the Engine, or systemd if it starts the
// Engine on demand. It is 0 for a process outside this host's PID namespace.
func (e *Engine) Listener(ctx context.Context) (pid int, err error) {
	connection, err := (&net.Dialer{Timeout: patience}).DialUnix(ctx, "unix", nil,
		&net.UnixAddr{Name: e.socket, Net: "unix"})
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrAway, err)
	}
	defer connection.Close()
	raw, err := connection.SyscallConn()
	if err != nil {
		return 0, err
	}
	var peer *unix.Ucred
	var refused error
	err = raw.Control(func(fd uintptr) {
		peer, refused = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) //nolint:gosec // a descriptor
	})
	if err = errors.Join(err, refused); err != nil {
		return 0, fmt.Errorf("finding the process that listens on %s: %w", e.socket, err)
	}
	return int(peer.Pid), nil
}
