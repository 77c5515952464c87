package domain

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// volumeName is what Docker accepts as the name of a volume.
var volumeName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]+$`)

// validateMounts checks each mount by itself.
func validateMounts(ps *Problems, at Path, mounts []Mount) {
	for i, m := range mounts {
		path := at.At("mounts", i)
		oneOf(ps, path.At("type"), "mount type", m.Type, MountTypes)
		validateTarget(ps, path.At("target"), m.Target)
		switch source := path.At("source"); m.Type {
		case "", MountBind:
			if !strings.HasPrefix(m.Source, "/") {
				ps.Add(source, "Invalid mount",
					"%q is not an absolute path, which a bind mount needs; abspath(...) makes one", m.Source)
				ps.DecidedBy([]Path{source, path.At("type")})
			}
		case MountVolume:
			if !volumeName.MatchString(m.Source) {
				ps.Add(source, "Invalid mount", "%q is not a valid volume name: use two or more letters, digits, "+
					"underscores, dots and hyphens, starting with a letter or digit; for a path of the host, "+
					"use type %q", m.Source,
					MountBind)
			}
		case MountTmpfs:
			if m.Source != "" {
				ps.Add(source, "Invalid mount", "a tmpfs has no source, got %q; leave it out", m.Source)
			}
		}
		switch size := path.At("size_mib"); {
		case m.SizeMiB < 0:
			ps.Add(size, "Invalid size", "must be 1 or more, or 0 for no limit, got %d", m.SizeMiB)
		case m.SizeMiB > 0 && m.Type != MountTmpfs:
			ps.Add(size, "Invalid size", "only a mount of type %q has a size", MountTmpfs)
			ps.DecidedBy([]Path{size, path.At("type")})
		}
		validateDriver(ps, path, m)
	}
}

// validateDriver checks the driver of a mount.
func validateDriver(ps *Problems, at Path, m Mount) {
	if m.Driver == nil {
		return
	}
	driver := at.At("driver")
	if m.Driver.Name == "" {
		ps.Add(driver.At("name"), "Missing volume driver", "the driver's name is empty; every engine has \"local\"")
	}
	if m.Type != MountVolume {
		ps.Add(driver, "Invalid volume driver", "only a mount of type %q has a driver", MountVolume)
		ps.DecidedBy([]Path{driver, at.At("type")})
	}
}

// validateTarget checks the path at which members find something.
func validateTarget(ps *Problems, at Path, target string) {
	switch {
	case !strings.HasPrefix(target, "/"):
		ps.Add(at, "Invalid target", "%q is not an absolute path", target)
	case path.Clean(target) == "/":
		ps.Add(at, "Invalid target", "%q is the root of the file system, which can't be mounted over", target)
	case path.Clean(target) == FilesDir || strings.HasPrefix(path.Clean(target), FilesDir+"/"):
		ps.Add(at, "Reserved target", "%q is in %s, where Trainyard puts the files that it generates for members, "+
			"such as the MPI hostfile; choose another folder", target, FilesDir)
	}
}

// target is a path at which a member finds something, and the attribute that sets it.
type target struct {
	at   Path
	path string
}

// validateTargets checks that everything a member finds has a different path, whether its role or the group sets it.
func validateTargets(ps *Problems, g Group) {
	reported := map[string]bool{}
	for _, name := range g.RoleNames() {
		taken := map[string]Path{}
		for _, t := range targets(g, name) {
			clean := path.Clean(t.path)
			before, found := taken[clean]
			if !found {
				taken[clean] = t.at
				continue
			}
			if at := t.at.String(); !reported[at] {
				reported[at] = true
				ps.Add(t.at, "Target taken", "%q is already the target of %s", t.path, before)
				ps.DecidedBy(slices.Concat(OrOwn(name, t.at), OrOwn(name, before)))
			}
		}
	}
}

// targets returns the paths at which the members of a role find something: mounts first, then /dev/shm if its size is
// set, then configs and secrets by name.
func targets(g Group, role string) []target {
	own, group := Path{"roles", Key(role)}, Path{}
	r, at := g.Roles[role].Template, group
	if r.Mounts != nil {
		at = own
	}
	var list []target
	effective := g.EffectiveTemplate(role)
	for i, m := range effective.Mounts {
		list = append(list, target{at.At("mounts", i, "target"), m.Target})
	}
	if effective.Container == nil {
		return list
	}
	at = group
	if r.Container != nil {
		at = own
	}
	if effective.Container.ShmSizeMiB > 0 {
		list = append(list, target{at.At("container", "shm_size_mib"), ShmDir})
	}
	for _, name := range slices.Sorted(maps.Keys(effective.Container.Configs)) {
		if config := effective.Container.Configs[name]; config.Target != "" {
			list = append(list, target{at.At("container", "configs", Key(name), "target"), config.Target})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(effective.Container.Secrets)) {
		list = append(list,
			target{at.At("container", "secrets", Key(name), "target"), effective.Container.Secrets[name].Path(name)})
	}
	return list
}
