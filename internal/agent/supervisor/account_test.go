//go:build linux

package supervisor

import (
	"errors"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
)

// ownerOf returns the IDs of a file's user and group.
func ownerOf(t *testing.T, path string) (uid, gid uint32) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	status := info.Sys().(*syscall.Stat_t) //nolint:forcetypeassert // on Linux
	return status.Uid, status.Gid
}

// openFolder returns a new folder that all users can write to. Only root can enter t.TempDir, and perhaps TMPDIR.
func openFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("/var/tmp", "") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if err := os.Chmod(folder, 0o777); err != nil { //nolint:gosec // as said
		t.Fatal(err)
	}
	return folder
}

// TestAccountsGroups: an account reaches what its groups may, the additional ones, too, and nothing of others.
func TestAccountsGroups(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can act as another user")
	}
	const uid, gid, additional, foreign = 65530, 65531, 65532, 65533
	folder := openFolder(t)
	a := &account{name: "ann", uid: uid, gid: gid, groups: []uint32{gid, additional}}
	for group, may := range map[int]bool{gid: true, additional: true, foreign: false} {
		dir := filepath.Join(folder, strconv.Itoa(group))
		if err := errors.Join(os.Mkdir(dir, 0o750), os.Chown(dir, 0, group)); err != nil {
			t.Fatal(err)
		}
		if err := a.enter(dir); (err == nil) != may || err != nil && !errors.Is(err, fs.ErrPermission) {
			t.Errorf("a folder of group %d: %v, may enter: %v", group, err, may)
		}
	}
}

// TestFindAccount: an account has the group it runs as, which need not be its user's, and those that list its user;
// with root's group, it has no additional ones, as systemd starts members.
func TestFindAccount(t *testing.T) {
	current, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	const other = "1"
	for name, gid := range map[string]string{
		current.Username: current.Gid, current.Uid: current.Gid, current.Uid + ":" + current.Gid: current.Gid,
		current.Username + ":" + other: other, current.Uid + ":0": "0",
	} {
		a, err := findAccount(name)
		if err != nil {
			t.Fatal(err)
		}
		var got, want []string
		for _, group := range a.groups {
			got = append(got, strconv.FormatUint(uint64(group), 10))
		}
		if gid != "0" {
			member := *current
			member.Gid = gid
			if want, err = member.GroupIds(); err != nil {
				t.Fatal(err)
			}
		}
		if strconv.Itoa(a.gid) != gid || !slices.Equal(got, want) {
			t.Errorf("%s runs as group %d with groups %q, want %s with %q", name, a.gid, got, gid, want)
		}
	}
}
