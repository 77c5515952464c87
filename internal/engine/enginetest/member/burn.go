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
	// slice is how long a member that burns looks ahead, and the least that it sleeps between two bursts.
	slice = 5 * time.Millisecond
	// debt bounds how much a member makes up for that the machine did not let it have.
	debt = 20 * time.Millisecond
)

// burn takes as many processors as the file "load" of a folder says, divided among the members that share the folder:
// none where there is no such file.
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
		text, _ := os.ReadFile(filepath.Join(folder, "load")) // without it there is nothing to do
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

// processorTime is what this process has taken of the processors.
func processorTime() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage) // of itself, a process may always ask
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
