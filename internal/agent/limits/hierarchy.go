//go:build linux

package limits

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// The controllers that the limits need.
const (
	cpu    = "cpu"
	memory = "memory"
)

// errNotMounted means that this machine or container has no cgroups.
var errNotMounted = errors.New("control groups are not mounted")

// hierarchy is a cgroup tree, and the controllers taken from it. Version 2 has a single, unified tree; version 1 may
// have one per controller.
type hierarchy struct {
	unified     bool
	mount       string
	controllers []string
	// own is this process's group, relative to the mount point.
	own string
}

// findHierarchies returns the hierarchies with the controllers for the limits.
func findHierarchies() ([]hierarchy, error) {
	mounts, err := procfs.GetMounts()
	if err != nil {
		return nil, fmt.Errorf("finding the control groups: %w", err)
	}
	self, err := procfs.Self()
	if err != nil {
		return nil, fmt.Errorf("finding the control groups: %w", err)
	}
	own, err := self.Cgroups()
	if err != nil {
		return nil, fmt.Errorf("finding this process's control group: %w", err)
	}
	return hierarchiesIn(mounts, own)
}

// hierarchiesIn selects the hierarchies from the mounts and this process's own groups. If version 1 has a controller,
// it is taken from there, as version 2 then can't have it.
func hierarchiesIn(mounts []*procfs.MountInfo, own []procfs.Cgroup) ([]hierarchy, error) {
	var found []hierarchy
	for _, controller := range []string{cpu, memory} {
		i := slices.IndexFunc(mounts, func(m *procfs.MountInfo) bool {
			_, has := m.SuperOptions[controller]
			return m.FSType == "cgroup" && has
		})
		if i < 0 {
			i = slices.IndexFunc(mounts, func(m *procfs.MountInfo) bool { return m.FSType == "cgroup2" })
		}
		if i < 0 {
			return nil, fmt.Errorf("%w: no hierarchy for %s", errNotMounted, controller)
		}
		same := slices.IndexFunc(found, func(h hierarchy) bool { return h.mount == mounts[i].MountPoint })
		if same >= 0 {
			found[same].controllers = append(found[same].controllers, controller)
			continue
		}
		h := hierarchy{
			unified: mounts[i].FSType == "cgroup2", mount: mounts[i].MountPoint, controllers: []string{controller},
		}
		for _, group := range own {
			if slices.Contains(group.Controllers, controller) || h.unified && group.HierarchyID == 0 {
				h.own = below(mounts[i].Root, group.Path)
			}
		}
		found = append(found, h)
	}
	return found, nil
}

// below returns the path of a group relative to the mounted group: "." if it is the same or lies outside, as in a
// container that sees another part of the tree.
func below(root, group string) string {
	rel, err := filepath.Rel(root, group)
	// A group outside this process's cgroup namespace appears as "/../<path>".
	if err != nil || !filepath.IsLocal(rel) || strings.HasPrefix(group, "/..") {
		return "."
	}
	return rel
}

// ancestry returns the directories of the groups from the topmost one to this process's own.
func (h hierarchy) ancestry() []string {
	dirs := []string{h.mount}
	for part := range strings.SplitSeq(h.own, "/") {
		if part != "." && part != "" {
			dirs = append(dirs, filepath.Join(dirs[len(dirs)-1], part))
		}
	}
	return dirs
}

// parent returns the directory to create groups in, below the topmost group that this process may manage.
func (h hierarchy) parent() (string, error) {
	var problem error
	for _, dir := range h.ancestry() {
		err := h.manage(dir)
		if err == nil {
			return filepath.Join(dir, parentName), nil
		}
		// A problem with a group that this user may write to says more than that other groups belong to root.
		if problem == nil || denied(problem) && !denied(err) {
			problem = err
		}
	}
	if denied(problem) {
		return "", fmt.Errorf("this user is not allowed to create control groups below %s (own group: %s): run as "+
			"root, or in a control group delegated to the user, such as with `systemd-run --user --scope`", h.mount,
			filepath.Join("/", h.own))
	}
	if errors.Is(problem, unix.EROFS) {
		return "", fmt.Errorf("the control groups at %s are mounted read-only: in a container, mount them writable",
			h.mount)
	}
	return "", problem
}

// manage prepares the parent of our groups in dir, or returns why it can't.
func (h hierarchy) manage(dir string) error {
	parent := filepath.Join(dir, parentName)
	if h.unified {
		// Moving a process requires write access to the nearest common ancestor of both groups.
		if err := unix.Access(filepath.Join(dir, procsFile), unix.W_OK); err != nil {
			return fmt.Errorf("moving processes below the control group %s: %w", dir, err)
		}
		if err := h.enable(dir); err != nil {
			return err
		}
	}
	if err := os.Mkdir(parent, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("creating the control group %s: %w", parent, err)
	}
	if h.unified {
		return h.enable(parent)
	}
	// Another user, such as root, may have created it.
	if err := unix.Access(parent, unix.W_OK); err != nil {
		return fmt.Errorf("creating groups in the control group %s: %w", parent, err)
	}
	return nil
}

// enable makes the controllers available to the children of a unified group dir.
func (h hierarchy) enable(dir string) error {
	offered, err := words(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	enabled, err := words(filepath.Join(dir, "cgroup.subtree_control"))
	if err != nil {
		return err
	}
	var wanted []string
	for _, controller := range h.controllers {
		switch {
		case slices.Contains(enabled, controller):
		case slices.Contains(offered, controller):
			wanted = append(wanted, "+"+controller)
		default:
			return fmt.Errorf("the control group %s does not have the %s controller (only %s): an administrator can "+
				"add Delegate=cpu memory to its unit", dir, controller, strings.Join(offered, ", "))
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	err = write(filepath.Join(dir, "cgroup.subtree_control"), strings.Join(wanted, " "))
	if errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("the control group %s contains processes, so it can't delegate controllers: move them to a "+
			"child group, or run as root in the host's own namespace", dir)
	}
	if err != nil {
		return fmt.Errorf("enabling controllers of the control group %s: %w", dir, err)
	}
	return nil
}

// denied reports whether an error is a lack of permission.
func denied(err error) bool {
	return errors.Is(err, fs.ErrPermission)
}

// words returns the words in a file.
func words(file string) ([]string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading a control group: %w", err)
	}
	return strings.Fields(string(content)), nil
}
