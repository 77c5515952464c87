//go:build linux

package statedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// trust is who may own a state directory and the path to it: root and the user of this process, as OpenSSH requires for
// its keys.
type trust struct {
	user uint32
	// passwd and group are the files with the users and the groups of this machine.
	passwd, group string
}

// ours is the trust of this process.
func ours() trust {
	return trust{user: uint32(os.Geteuid()), passwd: "/etc/passwd", group: "/etc/group"} //nolint:gosec // a user ID
}

// check fails if another user could have put something into a state directory, or could replace it. Missing folders are
// not a problem.
func (t trust) check(d Dir) error {
	for _, folder := range slices.Concat([]string{"."}, folders) {
		if err := t.follow(d.Path(folder)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the state directory %s can't be used: %w", d.Path(), err)
		}
	}
	return nil
}

// maxLinks is how many symbolic links a path may lead through, as in Linux.
const maxLinks = 40

// follow follows an absolute path and all links on the way, and examines each folder and link.
func (t trust) follow(path string) error {
	at, left, links := "/", strings.Split(path, "/"), 0
	for len(left) > 0 {
		next := filepath.Join(at, left[0]) // its first part is free of links, so ".." leads to the parent
		left = left[1:]
		var status unix.Stat_t
		if err := unix.Lstat(next, &status); err != nil {
			return &fs.PathError{Op: "lstat", Path: next, Err: err}
		}
		if err := t.examine(next, status, len(left) == 0); err != nil {
			return err
		}
		if status.Mode&unix.S_IFMT != unix.S_IFLNK {
			at = next
			continue
		}
		target, err := os.Readlink(next)
		if links++; err == nil && links > maxLinks {
			err = &fs.PathError{Op: "follow", Path: path, Err: unix.ELOOP}
		}
		if err != nil {
			return err
		}
		if filepath.IsAbs(target) {
			at = "/"
		}
		left = slices.Concat(strings.Split(target, "/"), left)
	}
	return nil
}

// examine fails if somebody else owns a folder or link, or may write to it. A sticky folder, such as /tmp, may lead to
// a state directory, as nobody can replace others' files there; but it can't be part of one.
func (t trust) examine(path string, status unix.Stat_t, last bool) error {
	mode := status.Mode & 0o7777
	sticky := mode&unix.S_ISVTX != 0 && !last
	switch {
	case !t.trusts(status.Uid):
		return fmt.Errorf("%s belongs to %s, who could run programs as %s: only the latter and root may own it. "+
			"Choose another state_dir (TRAINYARD_STATE_DIR); or remove it or, if you trust its contents, change its "+
			"owner (chown -hR)",
			path, userName(status.Uid), userName(t.user))
	case status.Mode&unix.S_IFMT == unix.S_IFLNK || sticky:
		return nil // the mode of a link means nothing
	case mode&unix.S_IWOTH != 0, mode&unix.S_IWGRP != 0 && (!t.private(status.Gid) || hasACL(path)):
		return fmt.Errorf("%s is writable by others (mode %#o, group %d), who could run programs as %s. "+
			"Choose another state_dir (TRAINYARD_STATE_DIR); or, if you trust its contents, make it unwritable for "+
			"them (chmod go-w)",
			path, mode, status.Gid, userName(t.user))
	}
	return nil
}

func (t trust) trusts(user uint32) bool { return user == 0 || user == t.user }

// private reports whether a group has only trusted members, as a user's private group has, with which a umask of 002 is
// safe. A group that is not in this machine's own files, such as one in LDAP, is not private.
func (t trust) private(gid uint32) bool {
	group := fmt.Sprint(gid)
	ids := map[string]string{}
	var members []string
	for _, user := range entries(t.passwd) {
		ids[user[0]] = user[2]
		if user[3] == group {
			members = append(members, user[2])
		}
	}
	known := false
	for _, listed := range entries(t.group) {
		if listed[2] != group {
			continue
		}
		known = true
		for name := range strings.FieldsFuncSeq(listed[3], func(r rune) bool { return r == ',' }) {
			members = append(members, ids[name]) // empty for an unknown user, who is not trusted
		}
	}
	return known && len(members) > 0 && !slices.ContainsFunc(members, func(member string) bool {
		id, err := strconv.ParseUint(member, 10, 32)
		return err != nil || !t.trusts(uint32(id))
	})
}

// entries returns the fields of each line of /etc/passwd or /etc/group; none if it can't be read.
func entries(path string) (all [][]string) {
	content, _ := os.ReadFile(path)
	for line := range strings.Lines(string(content)) {
		if fields := strings.Split(strings.TrimSpace(line), ":"); len(fields) >= 4 {
			all = append(all, fields)
		}
	}
	return all
}

// hasACL reports whether a file has an access control list, so that its group bits don't show who may write.
func hasACL(path string) bool {
	size, err := unix.Getxattr(path, "system.posix_acl_access", nil)
	return err == nil && size > 0
}

func userName(id uint32) string {
	if known, err := user.LookupId(fmt.Sprint(id)); err == nil {
		return fmt.Sprintf("user %s (%d)", known.Username, id)
	}
	return fmt.Sprintf("user %d", id)
}
