//go:build linux

package supervisor

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/limits"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/proctree"
)

// starvation detects whether the kernel killed a process of a container because of lack of memory, as Engines miss some
// kills. It reads the kernel's counter between the end of the first process and that of the cgroup.
type starvation struct {
	// counter is the file with the counter.
	counter string
	// events counts events of a version 1 cgroup from the beginning of the watch; nil for version 2.
	events *os.File
	// before is set if memory ran out before that.
	before  bool
	outcome chan bool
	// neverFull is set before the outcome if the container's own limit can't have been the cause.
	neverFull bool
}

// watchMemory watches the memory of the container with this first process. It returns nil if that is not possible.
func watchMemory(done context.Context, pid int) *starvation {
	groups, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cgroup"))
	if err != nil {
		return nil
	}
	counter := memoryCounter(string(groups))
	process, err := proctree.Lookup(pid)
	if err != nil || counter == "" {
		return nil
	}
	watcher, err := proctree.Watch(process.PID, process.StartTime)
	if err != nil {
		return nil
	}
	s := newStarvation(counter)
	if s == nil {
		return nil
	}
	go func() {
		<-watcher.Done()
		s.outcome <- s.look(done)
		s.close()
	}()
	return s
}

// newStarvation begins a watch. It returns nil if the cgroup is gone.
func newStarvation(counter string) *starvation {
	s := &starvation{counter: counter, events: countEvents(counter), outcome: make(chan bool, 1)}
	kills, imminent, err := oomKills(counter)
	if err != nil {
		s.close()
		return nil
	}
	s.before = kills > 0 || imminent
	return s
}

func (s *starvation) close() {
	if s.events != nil {
		_ = s.events.Close()
	}
}

// happened waits for the end of the container, and reports whether memory ran out.
func (s *starvation) happened() bool { return s != nil && <-s.outcome }

// removalNotice is how long after the end of a cgroup the kernel's notification may take on a busy host.
const removalNotice = time.Second

func (s *starvation) look(done context.Context) bool {
	kills, _, err := oomKills(s.counter)
	s.neverFull = !limits.Full(filepath.Dir(s.counter)) // after the kills, which the kernel counts last
	if err == nil || s.events == nil || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENODEV) {
		return s.before || kills > 0
	}
	// The cgroup is gone already: its end is one event, and each lack of memory another.
	if s.before || s.events.SetReadDeadline(time.Now().Add(removalNotice)) != nil {
		return s.before
	}
	defer context.AfterFunc(done, s.close)()
	for events := uint64(0); events <= 1; {
		var count [8]byte
		if _, err := s.events.Read(count[:]); err != nil {
			return false
		}
		events += binary.NativeEndian.Uint64(count[:])
	}
	return true
}

// memoryV1 is the file with the counter in version 1 cgroups, and eventControlV1 the one that registers for its events.
const (
	memoryV1       = "memory.oom_control"
	eventControlV1 = "cgroup.event_control"
)

// countEvents makes the kernel count the events of a version 1 cgroup.
func countEvents(counter string) *os.File {
	if filepath.Base(counter) != memoryV1 {
		return nil
	}
	control, err := os.Open(counter) //nolint:gosec // of a cgroup
	if err != nil {
		return nil
	}
	defer control.Close()
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil
	}
	events := os.NewFile(uintptr(fd), "events")
	order := fmt.Sprintf("%d %d", fd, control.Fd())
	if err := os.WriteFile(filepath.Join(filepath.Dir(counter), eventControlV1), []byte(order), 0); err != nil {
		_ = events.Close()
		return nil
	}
	return events
}

// memoryCounter returns the file with the counter of a process's cgroup, given its cgroups as the kernel lists them;
// empty if the process is exiting, whose version 1 cgroup reads as the root.
func memoryCounter(groups string) string {
	unified := ""
	for line := range strings.Lines(groups) {
		controllers, path, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":/")
		_, names, _ := strings.Cut(controllers, ":")
		switch known := path != "" && !strings.HasSuffix(path, " (deleted)"); {
		case names == "memory" && known:
			return filepath.Join("/sys/fs/cgroup/memory", path, memoryV1)
		case names == "memory":
			return ""
		case names == "" && known:
			unified = filepath.Join("/sys/fs/cgroup", path, "memory.events")
		}
	}
	return unified
}

// oomKills reads the counter of processes that were killed because of lack of memory, and whether the next kill is
// imminent in a version 1 cgroup: the kernel notifies first.
func oomKills(file string) (kills int, imminent bool, err error) {
	content, err := os.ReadFile(file) //nolint:gosec // of a cgroup
	if err != nil {
		return 0, false, err
	}
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(line)
		imminent = imminent || line == "under_oom 1"
		if count, found := strings.CutPrefix(line, "oom_kill "); found {
			kills, err = strconv.Atoi(count)
		}
	}
	return kills, imminent, err
}
