//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/proctree"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
)

// crew are the PIDs of a cluster's processes, besides the members' own commands and the agent.
type crew struct {
	supervisor int
	controller int
	// shells are those that run the members, the controller and the agent.
	shells []int
}

// crewOf finds the crew of a cluster in its state directory.
func crewOf(dir statedir.Dir) (crew, error) {
	var c crew
	holder, held, err := dir.Holder(statedir.SupervisorLock)
	if err != nil {
		return c, err
	}
	if !held {
		return c, errors.New("no supervisor is at work")
	}
	c.supervisor = holder.Process
	names, err := dir.List(statedir.States)
	if err != nil {
		return c, err
	}
	instances, err := proctree.Scan()
	if err != nil {
		return c, err
	}
	for name := range names {
		state, err := statedir.Read[statedir.State](dir.Document(statedir.States, name))
		if err != nil {
			return c, fmt.Errorf("state of %s: %w", name, err)
		}
		c.shells = append(c.shells, state.PID)
		if state.Group != "" || state.Role != "controller" {
			continue
		}
		for _, p := range instances[state.Instance] {
			if p.PID != state.PID {
				c.controller = p.PID
			}
		}
	}
	if c.controller == 0 {
		return c, errors.New("no controller is at work")
	}
	return c, nil
}

// all returns all PIDs of the crew.
func (c crew) all() []int { return append([]int{c.supervisor, c.controller}, c.shells...) }

// privateMemory returns the memory, in bytes, that processes share with no others: what ending them would free.
func privateMemory(pids ...int) (bytes uint64, err error) {
	for _, pid := range pids {
		p, err := procfs.NewProc(pid)
		if err != nil {
			return 0, err
		}
		private, err := privateOf(p)
		if err != nil {
			return 0, err
		}
		bytes += private
	}
	return bytes, nil
}

func privateOf(p procfs.Proc) (bytes uint64, err error) {
	maps, err := p.ProcSMapsRollup()
	if err != nil {
		return 0, fmt.Errorf("memory of process %d: %w", p.PID, err)
	}
	return maps.PrivateClean + maps.PrivateDirty, nil
}

// cpuTime returns the CPU time used by processes so far.
func cpuTime(pids ...int) (total time.Duration, err error) {
	for _, pid := range pids {
		p, err := proctree.Lookup(pid)
		if err != nil {
			return 0, err
		}
		total += p.CPU
	}
	return total, nil
}

// sweep is the pause before looking again for killed processes.
const sweep = 20 * time.Millisecond

// endProcesses kills the processes from a folder, and returns how many there were at first.
func endProcesses(ctx context.Context, dir string) (found int, err error) {
	for first := true; ; first = false {
		pids, err := processesOf(dir)
		if err != nil || len(pids) == 0 {
			return found, err
		}
		if first {
			found = len(pids)
		}
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGKILL) // it may have ended by now
		}
		if err := pause(ctx, sweep); err != nil {
			return found, fmt.Errorf("processes of %s can't be ended: %w", dir, err)
		}
	}
}

// processesOf returns the PIDs of the processes that run in a folder, or have it in their arguments.
func processesOf(dir string) ([]int, error) {
	processes, err := procfs.AllProcs()
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, p := range processes {
		if p.PID == os.Getpid() {
			continue
		}
		// What can't be read has ended, or is another user's.
		cwd, _ := p.Cwd()
		arguments, _ := p.CmdLine()
		if strings.HasPrefix(cwd, dir+"/") || strings.Contains(strings.Join(arguments, "\n"), dir+"/") {
			pids = append(pids, p.PID)
		}
	}
	return pids, nil
}

// pause waits for d, or until ctx is done.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
