package sshclient

import (
	"context"
	"net"

	"github.com/Microsoft/go-winio"
)

func dialPipe(ctx context.Context, _, path string) (net.Conn, error) {
	return winio.DialPipeContext(ctx, path)
}
