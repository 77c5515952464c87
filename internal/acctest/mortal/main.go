//go:build linux

// Command mortal is the provider, killed after one of its engine calls that change something. The environment says
// after which: their number is counted over all of its processes. It shows that the next apply continues from there.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/enginetest"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/process"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider"
)

func main() {
	program := os.Getenv(acctest.ProgramVariable)
	engines := engine.Registry{
		process.Name: mortal(process.Driver(process.Program{File: program, Version: "dev"})),
		swarm.Name:   mortal(swarm.Driver(swarm.Program{File: program, Version: "dev"})),
		systemd.Name: mortal(systemd.Driver(systemd.Program{File: program})),
	}
	if err := provider.Serve("test", engines, false); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// mortal counts the changing calls of the engines that a driver opens. Dying after a read or an attempt to lock makes
// no difference to whoever comes next.
func mortal(driver engine.Driver) engine.Driver {
	open := driver.Open
	driver.Open = func(cluster domain.ClusterRef, settings engine.Settings) (engine.Engine, error) {
		e, err := open(cluster, settings)
		if err != nil {
			return nil, err
		}
		return enginetest.OneByOne(engine.Intercept(e,
			func(_ context.Context, call engine.Call, do func() error) error {
				err := do()
				if err != nil || !call.Changes {
					return err
				}
				return count(call.Name)
			})), nil
	}
	return driver
}

// count appends a call to the list of calls, and kills this process if it was the last call allowed.
func count(call string) error {
	path := os.Getenv(acctest.CallsVariable)
	list, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, writeErr := fmt.Fprintln(list, call)
	_ = list.Close()
	calls, readErr := os.ReadFile(path)
	if writeErr != nil || readErr != nil {
		return fmt.Errorf("the list of calls: %w, %w", writeErr, readErr)
	}
	last, convErr := strconv.Atoi(os.Getenv(acctest.LastCallVariable))
	if convErr == nil && bytes.Count(calls, []byte("\n")) >= last {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	return nil
}
