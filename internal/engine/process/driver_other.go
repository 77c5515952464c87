//go:build !linux

package process

import (
	"runtime"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// Driver returns a driver that refuses: hosts of this engine run Linux.
func Driver(Program) engine.Driver { return refusing(runtime.GOOS) }
