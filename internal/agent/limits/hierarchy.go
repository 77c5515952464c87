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

// The controllers that limits need.
const (
	cpu    = "cpu"
	memory = "memory"
)

// errNotMounted means that this machine, or this container, has no control groups.
var errNotMounted = errors.New("control groups are not mounted")

// hierarchy is a tree of groups, and the controllers that are taken from it. Version 2 has one tree, which is
// called unified; version 1 may have one for each controller.
type hierarchy struct {
	unified     bool
	mount       string
	controllers []string
	// own is this process's group, below the mount point.
	own string
}

// findHierarchies returns the hierarchies that hold the controllers for limits.
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

// hierarchiesIn picks the hierarchies from what is mounted and from this process's own groups. A controller is
// taken from version 1 where it is there, since version 2 then has it not.
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
			return nil, fmt.Errorf("%w: there is no hierarchy for %s", errNotMounted, controller)
		}
		same := slices.IndexFunc(found, func(h hierarchy) bool { return h.mount == mounts[i].MountPoint })
		if same >= 0 {
			found[same].controllers = append(found[same].controllers, controller)
			continue
		}
		h := hierarchy{unified: mounts[i].FSType == "cgroup2", mount: mounts[i].MountPoint, controllers: []string{controller}}
		for _, group := range own {
			if slices.Contains(group.Controllers, controller) || h.unified && group.HierarchyID == 0 {
				h.own = below(mounts[i].Root, group.Path)
			}
		}
		found = append(found, h)
	}
	return found, nil
}

// below returns the path of a group relative to the group that is mounted: "." where it is the same, or
// where it lies outside, as in a container that shows another part of the tree.
func below(root, group string) string {
	rel, err := filepath.Rel(root, group)
	// A group outside of this process's namespace is shown as "/../<path>".
	if err != nil || !filepath.IsLocal(rel) || strings.HasPrefix(group, "/..") {
		return "."
	}
	return rel
}

// ancestry returns the folders of the groups from the topmost to this process's own.
func (h hierarchy) ancestry() []string {
	dirs := []string{h.mount}
	for part := range strings.SplitSeq(h.own, "/") {
		if part != "." && part != "" {
			dirs = append(dirs, filepath.Join(dirs[len(dirs)-1], part))
		}
	}
	return dirs
}

// parent returns the folder in which groups are created, below the topmost group that this process may manage.
func (h hierarchy) parent() (string, error) {
	var problem error
	for _, dir := range h.ancestry() {
		err := h.manage(dir)
		if err == nil {
			return filepath.Join(dir, parentName), nil
		}
		// What is wrong with a group that this user may write to explains more than that others are root's.
		if problem == nil || denied(problem) && !denied(err) {
			problem = err
		}
	}
	if denied(problem) {
		return "", fmt.Errorf("this user may not create control groups below %s (own group: %s): run as root, or in a group that is delegated to the user, such as that of `systemd-run --user --scope`", h.mount, filepath.Join("/", h.own))
	}
	if errors.Is(problem, unix.EROFS) {
		return "", fmt.Errorf("the control groups at %s are mounted read-only: in a container, mount them writable", h.mount)
	}
	return "", problem
}

// manage makes the parent of groups in dir ready, or tells why that can't be done.
func (h hierarchy) manage(dir string) error {
	parent := filepath.Join(dir, parentName)
	if h.unified {
		// To move a process, one must be allowed to write to the nearest group that is above both places.
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
	// It may be there because another user, such as root, made it.
	if err := unix.Access(parent, unix.W_OK); err != nil {
		return fmt.Errorf("creating groups in the control group %s: %w", parent, err)
	}
	return nil
}

// enable lets the groups in a unified group dir use the controllers.
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
			return fmt.Errorf("the control group %s is not given the %s controller (but %s): an administrator can add Delegate=cpu memory to the unit that it belongs to", dir, controller, strings.Join(offered, ", "))
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	err = write(filepath.Join(dir, "cgroup.subtree_control"), strings.Join(wanted, " "))
	if errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("the control group %s holds processes itself, so that it can't be divided: move them to a group in it, or run as root in the host's own namespace", dir)
	}
	if err != nil {
		return fmt.Errorf("enabling controllers of the control group %s: %w", dir, err)
	}
	return nil
}

// denied reports whether something is not allowed to this user, rather than wrong.
func denied(err error) bool {
	return errors.Is(err, fs.ErrPermission)
}

// words returns the words of a file.
func words(file string) ([]string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading a control group: %w", err)
	}
	return strings.Fields(string(content)), nil
}
