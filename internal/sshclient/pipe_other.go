//go:build !windows

package sshclient

import (
	"context"
	"errors"
	"net"
)

// errNoPipes is the error for named pipes on other systems than Windows.
var errNoPipes = errors.New("named pipes are Windows' alone; reach this machine's engine by unix://, others by tcp:// or ssh://")

func dialPipe(context.Context, string, string) (net.Conn, error) { return nil, errNoPipes }
