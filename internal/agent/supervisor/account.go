//go:build linux

package supervisor

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/filestore"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/rights"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// account is a user of this host other than root, as whom a member runs.
type account struct {
	name     string
	uid, gid int
	// groups are the account's groups, as systemd sets them: gid and those that list the user; none if gid is root's.
	groups []uint32
}

// findAccount returns the account of a user, or of a user and a group after a colon; nil for an empty name.
func findAccount(name string) (*account, error) {
	if name == "" {
		return nil, nil //nolint:nilnil // an empty name stands for no account
	}
	a := &account{name: name}
	name, group, hasGroup := strings.Cut(name, ":")
	found, err := user.Lookup(name)
	if _, isID := strconv.Atoi(name); isID == nil {
		found, err = user.LookupId(name)
	}
	if err != nil {
		return nil, fmt.Errorf("this host has no user %q", name)
	}
	if hasGroup {
		known, err := user.LookupGroup(group)
		if _, isID := strconv.Atoi(group); isID == nil {
			known, err = user.LookupGroupId(group)
		}
		if err != nil {
			return nil, fmt.Errorf("this host has no group %q", group)
		}
		found.Gid = known.Gid
	}
	if a.uid, err = strconv.Atoi(found.Uid); err != nil {
		return nil, err
	}
	if a.gid, err = strconv.Atoi(found.Gid); err != nil {
		return nil, err
	}
	if a.gid != 0 { // systemd doesn't look for more groups then
		a.groups, err = rights.Groups(found)
	}
	return a, err
}

// do runs f with the account's rights to files, and no others.
func (a *account) do(f func() error) error {
	if a == nil {
		return f()
	}
	return rights.As(a.uid, a.gid, a.groups, f)
}

// enter returns an error if the account can't make a folder its working directory.
func (a *account) enter(dir string) error {
	return a.do(func() error {
		_, err := os.Stat(dir + "/.")
		return err
	})
}

// execute returns an error if a program can't be executed, as far as can be checked in advance.
func (a *account) execute(program string) error {
	if a != nil {
		err := a.do(func() error { return unix.Faccessat(unix.AT_FDCWD, program, unix.X_OK, unix.AT_EACCESS) })
		if err != nil {
			return fmt.Errorf("%q can't be executed as user %q: %w", program, a.name, err)
		}
	}
	file, err := os.Open(program)
	if err != nil {
		return err
	}
	defer file.Close()
	line, _ := bufio.NewReader(io.LimitReader(file, maxInterpreter)).ReadString('\n')
	script, isScript := strings.CutPrefix(line, "#!")
	if fields := strings.Fields(script); isScript && len(fields) > 0 {
		if _, err := os.Stat(fields[0]); err != nil {
			return fmt.Errorf("%q can't be executed: interpreter %q not found", program, fields[0])
		}
	}
	return nil
}

// maxInterpreter is how much of a script's first line Linux reads.
const maxInterpreter = 256

// own makes the account the owner of what is at paths that only root can change. Where root can't do that, as on some
// NFS, it is enough that the user is right.
func (a *account) own(paths ...string) error {
	if a == nil {
		return nil
	}
	for _, path := range paths {
		err := os.Lchown(path, a.uid, a.gid)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) && a.isUserOf(path) {
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isUserOf reports whether something belongs to the account's user, whatever its group.
func (a *account) isUserOf(path string) bool {
	var found unix.Stat_t
	return unix.Lstat(path, &found) == nil && int(found.Uid) == a.uid
}

// passage lets other users than root pass through a folder without listing it.
const passage = 0o711

// openWay gives the account access to a member's files, working directory, and files that were brought, which are in a
// state directory of root's.
func (a *account) openWay(dir statedir.Dir, member string) error {
	if a == nil {
		return nil
	}
	files := dir.FilesDir(member)
	for _, path := range []string{
		dir.Root, dir.Path(), dir.Path(statedir.Exits), filepath.Dir(files), filepath.Dir(dir.WorkDir(member)), files,
	} {
		if err := os.Chmod(path, passage); err != nil && !errors.Is(err, fs.ErrNotExist) { //nolint:gosec // see passage
			return err
		}
	}
	return filestore.Store{Dir: dir.Path(statedir.Content)}.Open()
}

// keepFiles creates a folder as the function [keepFiles] does, owned by the account.
func (a *account) keepFiles(dir string, files []domain.File) error {
	keep := func() error { return a.do(func() error { return keepFiles(dir, files, nil) }) }
	err := keep()
	if a == nil || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	// The account may lack the right to create the folder there. An existing one keeps its owner.
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil { //nolint:gosec // others have to pass through
		return err
	}
	if os.Mkdir(dir, 0o700) != nil {
		return err
	}
	if err := a.own(dir); err != nil {
		return err
	}
	return keep()
}
