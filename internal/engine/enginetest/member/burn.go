//go:build linux

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// slice is the scheduling interval of burn, and the minimum sleep between two bursts.
	slice = 5 * time.Millisecond
	// debt bounds how much processor time is made up for after the machine was too busy to provide it.
	debt = 20 * time.Millisecond
)

// burn uses the number of processors in the file "load" of a folder, divided among the members that share the folder;
// none if there is no such file.
func burn(folder string, stop <-chan os.Signal) (err error) {
	own := filepath.Join(folder, strconv.Itoa(os.Getpid()))
	if err := os.WriteFile(own, nil, 0o600); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(own)) }()
	last, counted := time.Now(), processorTime()
	var owed time.Duration
	for {
		select {
		case <-stop:
			return nil
		case <-time.After(slice):
		}
		text, _ := os.ReadFile(filepath.Join(folder, "load")) // without a file, the load is 0
		load, _ := strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
		sharing, _, err := sharers(folder)
		if err != nil {
			return err
		}
		now := time.Now()
		owed = min(owed+time.Duration(load/float64(sharing)*float64(now.Sub(last))), debt)
		last = now
		for processorTime()-counted < owed {
		}
		took := processorTime() - counted
		owed, counted = max(owed-took, 0), counted+took
	}
}

// processorTime is the processor time that this process has used.
func processorTime() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage) // a process may always ask about itself
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
