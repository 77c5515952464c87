package endpoint

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/sshclient"
)

// ErrNoSocket is for a host on which no engine listens at the given path, as far as can be told: OpenSSH gives
// the same answer where the user may not open the socket.
var ErrNoSocket = errors.New("no socket")

// unixDialer returns the way to an engine of this machine.
func unixDialer(socket string, limit time.Duration) dialFunc {
	return func(ctx context.Context) (net.Conn, error) {
		ctx, cancel := sshclient.Within(ctx, limit)
		defer cancel()
		conn, err := sshclient.NetDial(ctx, "unix", socket)
		return conn, socketFailure(socket, err)
	}
}

// socketFailure says what to do about a socket of this machine, where it isn't there or may not be opened.
func socketFailure(socket string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return sshclient.Failed(ErrNoSocket, "there is no socket %s; check the path, and that Docker runs there", socket)
	case errors.Is(err, fs.ErrPermission):
		return sshclient.Failed(sshclient.ErrPermissionDenied, "this user may not open %s; add it to the group that owns the socket, usually docker", socket)
	}
	return err
}
