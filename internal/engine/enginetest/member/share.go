//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// stepsASecond is how many steps a sharing member makes per second while it is alone.
const stepsASecond = 20

// share runs for the time that the work takes a single member, longer if others share the folder, and prints its steps.
// Its speed depends only on the number of sharers, not on the machine's load; a file "gate" in the folder ends it at
// once.
func share(operand string, stop <-chan os.Signal) (err error) {
	parts := strings.Split(operand, ",")
	if len(parts) < 3 {
		return fmt.Errorf("%q is not <folder>,<seconds>,<of one>,<of two>,…", operand)
	}
	folder := parts[0]
	var numbers []float64
	for _, text := range parts[1:] {
		number, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return err
		}
		numbers = append(numbers, number)
	}
	needs, together := numbers[0]*stepsASecond, numbers[1:]
	own := filepath.Join(folder, strconv.Itoa(os.Getpid()))
	if err := os.WriteFile(own, nil, 0o600); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(own)) }()
	for done, last := 0.0, time.Now(); done < needs; {
		select {
		case <-stop:
			return nil
		case <-time.After(look):
		}
		sharing, gate, err := sharers(folder)
		if err != nil || gate {
			return err
		}
		now, before := time.Now(), int(done)
		done += now.Sub(last).Seconds() * stepsASecond * together[min(sharing, len(together))-1] / float64(sharing)
		last = now
		for step := before + 1; step <= int(done); step++ {
			fmt.Fprintln(os.Stdout, "step", step)
		}
	}
	return nil
}

// sharers returns how many live members share a folder, and whether the folder has a file "gate".
func sharers(folder string) (n int, gate bool, err error) {
	entries, err := os.ReadDir(folder)
	for _, entry := range entries {
		pid, notOne := strconv.Atoi(entry.Name())
		gate = gate || entry.Name() == "gate"
		if notOne == nil && syscall.Kill(pid, 0) == nil {
			n++
		}
	}
	return max(n, 1), gate, err
}
