//go:build linux

package main

import (
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/procfs"
)

// peakLook is how often the memory of a process is looked at.
const peakLook = 10 * time.Millisecond

// peak does something, and returns the largest resident memory that a process of the provider reached meanwhile.
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
			if err != nil || !strings.HasPrefix(filepath.Base(program), "terraform-provider-trainyard") || !strings.HasPrefix(program, b.work) {
				continue // it has ended, or is another
			}
			if status, err := p.NewStatus(); err == nil {
				most = max(most, status.VmHWM)
			}
		}
	}
}
