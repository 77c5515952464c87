//go:build !linux

package program

import (
	"context"
	"fmt"
	"net"
	"runtime"
)

// Run refuses all commands, as hosts run Linux.
func Run(_ context.Context, _ string, args []string) error {
	return fmt.Errorf("unknown command %q on %s: terraform-provider-trainyard help lists the commands; supervise, "+
		"relay, controller and agent are run by Trainyard on hosts, which run Linux", args[0], runtime.GOOS)
}

// localNode is nil, as hosts run Linux.
var localNode func(context.Context) (net.Conn, error)
