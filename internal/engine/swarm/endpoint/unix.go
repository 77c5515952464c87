package endpoint

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/sshclient"
)

// ErrNoSocket means that apparently no engine listens at the given path: OpenSSH gives the same answer if the user may
// not open the socket.
var ErrNoSocket = errors.New("no socket")

// localDialer returns the dial function for an engine of this machine, by a socket or a pipe.
func localDialer(network, socket string, limit time.Duration) dialFunc {
	return func(ctx context.Context) (net.Conn, error) {
		ctx, cancel := sshclient.Within(ctx, limit)
		defer cancel()
		conn, err := sshclient.NetDial(ctx, network, socket)
		return conn, socketFailure(socket, err)
	}
}

// socketFailure says what to do about a socket or pipe of this machine that is missing or may not be opened.
func socketFailure(socket string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		what := "socket"
		if strings.HasPrefix(socket, pipes) {
			what = "pipe"
		}
		return sshclient.Failed(ErrNoSocket, "there is no %s %s; check the path, and that Docker is running", what,
			socket)
	case errors.Is(err, fs.ErrPermission):
		return sshclient.Failed(sshclient.ErrPermissionDenied,
			"no permission to open %s; add this user to the group that owns the socket, usually docker", socket)
	}
	return err
}
