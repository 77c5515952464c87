//go:build linux

package testbed

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// cgroupRoot is where control groups are mounted.
const cgroupRoot = "/sys/fs/cgroup"

// hierarchy is one of this machine's control group hierarchies. Its folder in cgroupRoot is "." for a pure version 2,
// "unified" for version 2 beside version 1, and otherwise named after the controllers.
type hierarchy struct {
	Folder string
	// Controllers are those of a version 1 hierarchy, or its name, as an option of mount. It is empty for version 2.
	Controllers string
}

// hierarchies returns the hierarchies mounted at their usual places.
func hierarchies() ([]hierarchy, error) {
	if _, err := os.Stat(filepath.Join(cgroupRoot, "cgroup.controllers")); err == nil {
		return []hierarchy{{Folder: "."}}, nil
	}
	lines, err := os.ReadFile("/proc/self/cgroup") // such as 4:memory:/
	if err != nil {
		return nil, err
	}
	var found []hierarchy
	tracks := false
	for line := range strings.Lines(string(lines)) {
		_, line, _ = strings.Cut(line, ":")
		controllers, _, _ := strings.Cut(line, ":")
		h := hierarchy{Folder: strings.TrimPrefix(controllers, "name="), Controllers: controllers}
		if controllers == "" {
			h.Folder = "unified"
		}
		if _, err := os.Stat(filepath.Join(cgroupRoot, h.Folder, "cgroup.procs")); err != nil {
			continue // not mounted
		}
		tracks = tracks || h.Folder == "systemd"
		found = append(found, h)
	}
	if !tracks {
		return nil, fmt.Errorf("%s has no control groups that systemd could use. Run: "+
			"mkdir %[1]s/systemd && mount -t cgroup -o none,name=systemd none %[1]s/systemd", cgroupRoot)
	}
	return found, nil
}

// path returns the path of a control group in the hierarchy.
func (h hierarchy) path(group string) string { return filepath.Join(cgroupRoot, h.Folder, group) }

// newControlGroups recreates a control group in all hierarchies, and delegates controllers so that its processes can
// create groups of their own.
func newControlGroups(group string, in []hierarchy) error {
	if err := onceEnded(func() error { return removeControlGroups(group) }); err != nil {
		return err
	}
	for _, h := range in {
		above, own := h.path(filepath.Dir(group)), h.path(group)
		if err := os.MkdirAll(own, 0o755); err != nil { //nolint:gosec // as all control groups are
			return err
		}
		var err error
		switch {
		case h.Folder == ".":
			err = errors.Join(delegate(h.path(".")), delegate(above))
		case slices.Contains(strings.Split(h.Controllers, ","), "cpuset"):
			err = inherit(h.path("."), above, own)
		}
		if err != nil {
			return fmt.Errorf("control group %s: %w", own, err)
		}
	}
	return nil
}

// delegate enables the controllers that systemd uses to limit units, for the children of a version 2 group.
func delegate(group string) error {
	controllers, err := os.ReadFile(filepath.Join(group, "cgroup.controllers"))
	if err != nil {
		return err
	}
	var enabled []string
	for controller := range strings.FieldsSeq(string(controllers)) {
		if slices.Contains([]string{"cpu", "cpuset", "io", "memory", "pids"}, controller) {
			enabled = append(enabled, "+"+controller)
		}
	}
	return os.WriteFile(filepath.Join(group, "cgroup.subtree_control"), []byte(strings.Join(enabled, " ")), 0)
}

// inherit copies the processors and memory nodes of the first cpuset group to the others, each the child of the one
// before it. Without them, they accept no process.
func inherit(groups ...string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(groups[0], file))
		if err != nil {
			return err
		}
		for _, group := range groups[1:] {
			if err := os.WriteFile(filepath.Join(group, file), value, 0); err != nil {
				return err
			}
		}
	}
	return os.WriteFile(filepath.Join(groups[len(groups)-1], "cgroup.clone_children"), []byte("1"), 0)
}

// cpuPeriod is the period, in microseconds, of CPU quotas; leastCPUs is the smallest number of CPUs that the kernel
// accepts.
const (
	cpuPeriod = 100_000
	leastCPUs = 0.01
)

// limitProcessors limits how many CPUs a control group can use; 0 is no limit.
func limitProcessors(group string, in []hierarchy, cpus float64) error {
	if cpus == 0 {
		return nil
	}
	for _, h := range in {
		quota := strconv.Itoa(int(cpus * cpuPeriod))
		var err error
		switch {
		case h.Folder == ".":
			err = os.WriteFile(filepath.Join(h.path(group), "cpu.max"), []byte(quota+" "+strconv.Itoa(cpuPeriod)), 0)
		case slices.Contains(strings.Split(h.Controllers, ","), "cpu"):
			err = errors.Join(
				os.WriteFile(filepath.Join(h.path(group), "cpu.cfs_period_us"), []byte(strconv.Itoa(cpuPeriod)), 0),
				os.WriteFile(filepath.Join(h.path(group), "cpu.cfs_quota_us"), []byte(quota), 0),
			)
		default:
			continue
		}
		if err != nil {
			return fmt.Errorf("bounding the processors of control group %s: %w", group, err)
		}
	}
	return nil
}

// joinControlGroups moves a process into a control group in all hierarchies.
func joinControlGroups(group string, in []hierarchy, process int) error {
	for _, h := range in {
		if err := os.WriteFile(filepath.Join(h.path(group), "cgroup.procs"), []byte(strconv.Itoa(process)),
			0); err != nil {
			return err
		}
	}
	return nil
}

// removeControlGroups removes the control groups, of either version, of a bed or of one of its machines.
func removeControlGroups(name string) error {
	var groups []string
	for _, pattern := range []string{filepath.Join(cgroupRoot, name), filepath.Join(cgroupRoot, "*", name)} {
		roots, err := filepath.Glob(pattern)
		if err != nil {
			return err
		}
		for _, root := range roots {
			err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
				if err == nil && entry.IsDir() {
					groups = append(groups, path)
				}
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	// Parents precede their children here, but children have to be removed first.
	for _, group := range slices.Backward(groups) {
		// A hierarchy may have several names.
		if err := unix.Rmdir(group); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("removing control group %s: %w", group, err)
		}
	}
	return nil
}
