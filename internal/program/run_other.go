//go:build !linux

package program

import (
	"context"
	"fmt"
	"runtime"
)

// Run refuses all commands: hosts run Linux.
func Run(_ context.Context, _ string, args []string) error {
	return fmt.Errorf("unknown command %q on %s: the provider is run as top, autoscale and sweep here; supervise, controller and agent are run on hosts, which run Linux", args[0], runtime.GOOS)
}
