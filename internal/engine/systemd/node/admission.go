//go:build linux

package node

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/rights"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
)

// relink makes a link point to a file.
func relink(file, link string) error {
	if present, err := os.Readlink(link); err == nil && present == file {
		return nil
	}
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink(file, link)
}

// loginsFile is the file in a cluster's state directory that lists all users as whom its controller was ever let in.
const loginsFile = "logins.json"

// admit lets the cluster's controller log in with this key, and no earlier one, for nothing but the relay. It logs in
// as the user who brought the program here. An empty key withdraws the access of all users.
func (p part) admit(key string) error {
	name := cmp.Or(os.Getenv("SUDO_USER"), "root")
	names, err := statedir.Read[[]string](p.dir.Path(loginsFile))
	if err != nil && !notFound(err) {
		return err
	}
	known := slices.Contains(names, name)
	if !known {
		names = append(names, name)
	}
	if key == "" {
		for _, name := range names {
			if err := p.admitAs(name, ""); err != nil {
				return err
			}
		}
		return nil
	}
	if !known {
		if err := statedir.Write(p.dir.Path(loginsFile), names, statedir.Durable); err != nil {
			return err
		}
	}
	return p.admitAs(name, key)
}

// admitAs is admit for one user.
func (p part) admitAs(name, key string) error {
	login, err := user.Lookup(name)
	if _, unknown := errors.AsType[user.UnknownUserError](err); unknown && key == "" {
		return nil // the user no longer exists
	}
	if err != nil {
		return err
	}
	return p.letIn(login, key)
}

// letIn puts the cluster's key into the login's authorized keys, or removes it. All clusters of the host change the
// same file, so they take turns: otherwise the later one would restore what the earlier one removed.
func (p part) letIn(login *user.User, key string) error {
	if _, err := os.Stat(p.dir.Root); errors.Is(err, fs.ErrNotExist) {
		return p.writeKeys(login, key) // no cluster is on this host
	}
	return statedir.WithFolder(p.dir.Root, func() error { return p.writeKeys(login, key) })
}

// writeKeys is letIn while no other cluster changes the file. What is in a home can be a link to anywhere, so the file
// is changed with the login's own rights, with which an SSH server reads it, too.
func (p part) writeKeys(login *user.User, key string) error {
	if login.Uid == strconv.Itoa(os.Geteuid()) {
		return p.changeKeys(login, key)
	}
	uid, err := strconv.Atoi(login.Uid)
	if err != nil {
		return err
	}
	gid, err := strconv.Atoi(login.Gid)
	if err != nil {
		return err
	}
	groups, err := rights.Groups(login)
	if err != nil {
		return err
	}
	err = rights.As(uid, gid, groups, func() error { return p.changeKeys(login, key) })
	if err == nil || key == "" { // no former login must be able to keep the host in the cluster
		return nil
	}
	return fmt.Errorf("adding the controller's key with the rights of user %s: %w", login.Username, err)
}

// changeKeys is writeKeys with the login's rights.
func (p part) changeKeys(login *user.User, key string) error {
	file := filepath.Join(login.HomeDir, ".ssh", "authorized_keys")
	before, err := readKeys(file)
	if err != nil {
		return err
	}
	mark := "trainyard cluster " + p.dir.Cluster
	var lines []string
	for line := range strings.Lines(string(before)) {
		if line = strings.TrimSuffix(line, "\n"); !strings.HasSuffix(line, " "+mark) {
			lines = append(lines, line)
		}
	}
	if key != "" {
		command := p.dir.Path(programLink) + " relay"
		if login.Uid != "0" {
			command = "sudo -n " + command
		}
		lines = append(lines, fmt.Sprintf("restrict,command=%q %s %s", command, key, mark))
	}
	after := strings.Join(append(lines, ""), "\n")
	if after == string(before) || after == "\n" && len(before) == 0 {
		return nil
	}
	return replace(file, after)
}

// readKeys reads an authorized keys file as an SSH server does: it doesn't wait for who writes to a named pipe.
func readKeys(name string) ([]byte, error) {
	file, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	return io.ReadAll(file)
}

// replace replaces an authorized keys file atomically.
func replace(file, text string) (err error) {
	folder := filepath.Dir(file)
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	temporary, err := os.CreateTemp(folder, ".authorized_keys-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temporary.Name())
		}
	}()
	_, err = temporary.WriteString(text)
	if err = errors.Join(err, temporary.Sync(), temporary.Close()); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), file)
}
