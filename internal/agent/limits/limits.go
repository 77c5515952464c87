//go:build linux

// Package limits bounds the CPU and memory of member instances with control groups v1 and v2, for root, and for
// ordinary users with a delegated group.
//
// Each instance has a group "trainyard/<name>" in the hierarchy of each controller, under the topmost group that this
// process may manage. That place is the same for all processes of a user, so a successor of the process that created a
// group finds it again.
package limits

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// parentName is the group that contains all others. It is kept when they are deleted.
	parentName = "trainyard"
	// procsFile is the file through which processes join a group.
	procsFile = "cgroup.procs"
	// deleteWithin is how long processes that were just killed may keep a group busy.
	deleteWithin = 2 * time.Second
)

// validName excludes the files of a cgroup, whose names contain a dot or an underscore.
var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{0,127}$`)

// Group is the cgroup with the processes of one instance.
type Group struct {
	name string
	dirs []directory
}

// directory is a group in one hierarchy.
type directory struct {
	hierarchy
	path string
}

// Available reports whether this process can enforce limits, and if not, why, in words for a user. It creates a group
// and removes it again.
func Available() (ok bool, reason string) {
	if err := probe(); err != nil {
		return false, err.Error()
	}
	return true, ""
}

func probe() error {
	g, err := Create("probe-"+rand.Text(), 1, 1024)
	if err != nil {
		return err
	}
	return g.Delete()
}

// Create creates a group whose processes together use at most cpus CPUs, and memoryMiB MiB of memory without swap; 0
// means unlimited. Processes may exceed the CPU limit for less than a tenth of a second, and are killed beyond the
// memory limit. If the group exists, its limits are replaced.
func Create(name string, cpus float64, memoryMiB int64) (*Group, error) {
	if err := validate(name, cpus, memoryMiB); err != nil {
		return nil, err
	}
	hierarchies, err := findHierarchies()
	if err != nil {
		return nil, err
	}
	group, made := &Group{name: name}, &Group{name: name}
	for _, h := range hierarchies {
		parent, err := h.parent()
		if err != nil {
			return nil, errors.Join(err, made.Delete())
		}
		dir := directory{hierarchy: h, path: filepath.Join(parent, name)}
		err = os.Mkdir(dir.path, 0o755)
		if err == nil {
			made.dirs = append(made.dirs, dir)
		}
		if err == nil || errors.Is(err, fs.ErrExist) {
			err = dir.limit(cpus, memoryMiB)
		}
		if err != nil {
			err = fmt.Errorf("creating the control group %s: %w", dir.path, err)
			return nil, errors.Join(err, made.Delete())
		}
		group.dirs = append(group.dirs, dir)
	}
	return group, nil
}

// Open returns an existing group, or [fs.ErrNotExist].
func Open(name string) (*Group, error) {
	if err := validate(name, 0, 0); err != nil {
		return nil, err
	}
	hierarchies, err := findHierarchies()
	if err != nil {
		return nil, err
	}
	g := &Group{name: name}
	for _, h := range hierarchies {
		for _, dir := range h.ancestry() {
			path := filepath.Join(dir, parentName, name)
			if _, err := os.Stat(path); err == nil {
				g.dirs = append(g.dirs, directory{hierarchy: h, path: path})
				break
			} else if !errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("opening the control group %s: %w", name, err)
			}
		}
	}
	if len(g.dirs) == 0 {
		return nil, fmt.Errorf("the control group %s: %w", name, fs.ErrNotExist)
	}
	return g, nil
}

// Raise changes the limits of a group with running processes: the CPU limit, and the memory limit if the new one is
// higher. 0 leaves a limit unchanged.
func (g *Group) Raise(cpus float64, memoryMiB int64) error {
	if err := validate(g.name, cpus, memoryMiB); err != nil {
		return err
	}
	for _, dir := range g.dirs {
		raised := dir
		raised.controllers = slices.DeleteFunc(slices.Clone(dir.controllers), func(controller string) bool {
			return controller == cpu && cpus == 0 || controller == memory && !dir.below(memoryMiB)
		})
		if err := raised.limit(cpus, memoryMiB); err != nil {
			return fmt.Errorf("raising the limits of the control group %s: %w", dir.path, err)
		}
	}
	return nil
}

// below reports whether a directory's memory limit is lower than memoryMiB.
func (d directory) below(memoryMiB int64) bool {
	file := "memory.limit_in_bytes"
	if d.unified {
		file = "memory.max"
	}
	content, err := os.ReadFile(filepath.Join(d.path, file))
	bytes, failed := strconv.ParseInt(strings.TrimSpace(string(content)), 10, 64) // fails for "max": no limit
	return err == nil && failed == nil && bytes>>20 < memoryMiB
}

// JoinFiles returns one file per hierarchy. A process joins the group by writing its ID to each, or 0 for itself.
func (g *Group) JoinFiles() []string {
	files := make([]string, len(g.dirs))
	for i, dir := range g.dirs {
		files[i] = filepath.Join(dir.path, procsFile)
	}
	return files
}

// OOMKills returns how many processes of the group the kernel killed for lack of memory, in the group or on the host.
func (g *Group) OOMKills() (int, error) {
	for _, dir := range g.dirs {
		if !slices.Contains(dir.controllers, memory) {
			continue
		}
		file := filepath.Join(dir.path, "memory.oom_control")
		if dir.unified {
			file = filepath.Join(dir.path, "memory.events")
		}
		return readCount(file, "oom_kill")
	}
	return 0, fmt.Errorf("the control group %s has no memory controller: it was partially deleted", g.name)
}

// Full reports whether the group ever ran out of the memory that it may use; true if that is unknown. If not, processes
// were killed because the host, or a group above this one, had none left.
func (g *Group) Full() bool {
	for _, dir := range g.dirs {
		if slices.Contains(dir.controllers, memory) {
			return Full(dir.path)
		}
	}
	return true
}

// Full reports of the cgroup in a folder what [Group.Full] does. It is unknown for a cgroup without a limit, as a
// container's may be that of a group above, and for control groups v1, as Linux 6.18 counts nothing in memory.failcnt.
func Full(folder string) bool {
	limit, err := os.ReadFile(filepath.Join(folder, "memory.max")) //nolint:gosec // of a cgroup
	if err != nil || strings.TrimSpace(string(limit)) == "max" {
		return true
	}
	times, err := readCount(filepath.Join(folder, "memory.events"), "oom")
	return err != nil || times > 0
}

// Delete removes the group and any groups that its processes created in it; it is no error if the group is gone. The
// processes must have ended: Delete waits two seconds for that, then fails and lists the remaining ones.
func (g *Group) Delete() error {
	return g.delete(deleteWithin)
}

func (g *Group) delete(within time.Duration) error {
	deadline, retry := time.NewTimer(within), time.NewTicker(10*time.Millisecond)
	defer deadline.Stop()
	defer retry.Stop()
	for {
		var busy []string
		for _, dir := range g.dirs {
			switch err := removeAll(dir.path); {
			case errors.Is(err, unix.EBUSY):
				busy = append(busy, dir.path)
			case err != nil:
				return fmt.Errorf("deleting the control group %s: %w", g.name, err)
			}
		}
		if len(busy) == 0 {
			return nil
		}
		select {
		case <-retry.C:
		case <-deadline.C:
			return fmt.Errorf("deleting the control group %s: it still contains processes %s; end them first",
				g.name, strings.Join(members(busy[0]), ", "))
		}
	}
}

// limit writes the limits of a directory's controllers.
func (d directory) limit(cpus float64, memoryMiB int64) error {
	for _, s := range settings(d.unified, cpus, memoryMiB) {
		if !slices.Contains(d.controllers, s.controller) {
			continue
		}
		err := write(filepath.Join(d.path, s.file), s.value)
		if err != nil && (!s.optional || !errors.Is(err, fs.ErrNotExist)) {
			return err
		}
	}
	return nil
}

// validate returns an error for an invalid name or limit.
func validate(name string, cpus float64, memoryMiB int64) error {
	// Written so that NaN is out of range.
	enforceable := cpus >= minCPUs && cpus <= maxCPUs
	switch {
	case !validName.MatchString(name):
		return fmt.Errorf("invalid control group name %q: use 1 to 128 letters, digits and hyphens", name)
	case cpus != 0 && !enforceable:
		return fmt.Errorf("a limit of %v CPUs can't be enforced: use %v to %v, or 0 for none", cpus, minCPUs, maxCPUs)
	case memoryMiB < 0 || memoryMiB > math.MaxInt64>>20:
		return fmt.Errorf("a limit of %d MiB of memory can't be enforced: use 1 to %d, or 0 for none", memoryMiB,
			math.MaxInt64>>20)
	}
	return nil
}

// removeAll removes a group and its children, or returns [unix.EBUSY] while there are processes.
func removeAll(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			if err := removeAll(filepath.Join(dir, entry.Name())); err != nil {
				return err
			}
		}
	}
	if err := unix.Rmdir(dir); err != nil && !errors.Is(err, unix.ENOENT) {
		return &fs.PathError{Op: "rmdir", Path: dir, Err: err}
	}
	return nil
}

// members returns the processes of a group and its children, as far as they are readable.
func members(dir string) []string {
	var pids []string
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == procsFile {
			content, _ := os.ReadFile(path)
			pids = append(pids, strings.Fields(string(content))...)
		}
		return nil
	})
	return pids
}

// readCount returns the number after a key in a file of "<key> <number>" lines.
func readCount(file, key string) (int, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	for lines := bufio.NewScanner(bytes.NewReader(content)); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), key+" "); ok {
			count, err := strconv.ParseUint(text, 10, strconv.IntSize-1)
			if err != nil {
				return 0, fmt.Errorf("%s: %s is %q, not a count", file, key, text)
			}
			return int(count), nil
		}
	}
	return 0, fmt.Errorf("%s has no %s: Linux 4.13 or later is required", file, key)
}

// write writes a setting to one of the kernel's files.
func write(file, value string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}
