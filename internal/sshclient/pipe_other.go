//go:build !windows

package sshclient

import (
	"context"
	"errors"
	"net"
)

// errNoPipes is the error for named pipes on other systems than Windows.
var errNoPipes = errors.New(
	"named pipes exist only on Windows; use unix:// for this machine's engine, tcp:// or ssh:// for others",
)

func dialPipe(context.Context, string, string) (net.Conn, error) { return nil, errNoPipes }
