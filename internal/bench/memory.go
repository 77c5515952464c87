//go:build linux

package main

import (
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/procfs"
)

// peakLook is the interval at which a process's memory is read.
const peakLook = 10 * time.Millisecond

// peak calls do, and returns the largest resident memory of any provider process in the meantime.
func (b *bench) peak(do func() error) (uint64, error) {
	done := make(chan error, 1)
	go func() { done <- do() }()
	look := time.NewTicker(peakLook)
	defer look.Stop()
	var most uint64
	for {
		select {
		case err := <-done:
			return most, err
		case <-look.C:
		}
		processes, err := procfs.AllProcs()
		if err != nil {
			return most, err
		}
		for _, p := range processes {
			program, err := p.Executable()
			if err != nil || !strings.HasPrefix(filepath.Base(program), "terraform-provider-trainyard") ||
				!strings.HasPrefix(program, b.work) {
				continue // it has ended, or is something else
			}
			if status, err := p.NewStatus(); err == nil {
				most = max(most, status.VmHWM)
			}
		}
	}
}
