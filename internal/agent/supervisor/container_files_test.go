//go:build linux

package supervisor

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// TestKeepReplacesLinks: a member's file replaces what an earlier attempt has put at its place, or at that of its
// temporary file, and leaves alone what that refers to.
func TestKeepReplacesLinks(t *testing.T) {
	for name, plant := range map[string]func(target, at string) error{
		"symbolic": os.Symlink, "hard": os.Link,
		"to nothing": func(target, at string) error { return os.Symlink(target+".absent", at) },
	} {
		t.Run(name, func(t *testing.T) {
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			others := filepath.Join(t.TempDir(), "passwd")
			must(os.WriteFile(others, []byte("theirs"), 0o600))
			i := &containerInstance{spec: domain.MemberSpec{
				Kept: filepath.Join(t.TempDir(), "kept"), Files: []domain.File{{Name: "config.json", Content: "ours"}},
			}}
			must(i.keep())
			file := filepath.Join(i.spec.Kept, "config.json")
			must(os.Remove(file))
			must(plant(others, file))
			must(plant(others, filepath.Join(i.spec.Kept, newName)))
			must(i.keep())
			content := func(path string) string {
				t.Helper()
				text, err := os.ReadFile(path)
				must(err)
				return string(text)
			}
			if theirs, ours := content(others), content(file); theirs != "theirs" || ours != "ours" {
				t.Errorf("the other file has %q, the member's %q", theirs, ours)
			}
			for folder, want := range map[string][]string{
				i.spec.Kept: {"config.json"}, filepath.Dir(others): {"passwd"},
			} {
				entries, err := os.ReadDir(folder)
				must(err)
				var names []string
				for _, entry := range entries {
					names = append(names, entry.Name())
				}
				if !slices.Equal(names, want) {
					t.Errorf("%s has %q, want %q", folder, names, want)
				}
			}
		})
	}
}

// TestFailedKeep: a file that can't be moved into place leaves nothing behind.
func TestFailedKeep(t *testing.T) {
	i := &containerInstance{spec: domain.MemberSpec{
		Kept: filepath.Join(t.TempDir(), "kept"), Files: []domain.File{{Name: "absent/config.json"}},
	}}
	if err := i.keep(); err == nil {
		t.Error("a file was written to an absent folder")
	}
	if left, err := os.ReadDir(i.spec.Kept); err != nil || len(left) != 0 {
		t.Errorf("it leaves %v (%v)", left, err)
	}
}

// TestKeepAgain: at a later attempt, too, the folder and its files belong to the member's user, even if the first one
// failed.
func TestKeepAgain(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make files of other users")
	}
	i := &containerInstance{spec: domain.MemberSpec{
		Kept: filepath.Join(t.TempDir(), "kept"), Files: []domain.File{{Name: "absent/config.json"}},
	}}
	i.spec.Container.User = "1000:1001"
	if err := i.keep(); err == nil {
		t.Error("a file was written to an absent folder")
	}
	i.spec.Files = []domain.File{{Name: "config.json", Content: "ours"}}
	for attempt := range 2 {
		if err := i.keep(); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{i.spec.Kept, filepath.Join(i.spec.Kept, "config.json")} {
			if uid, gid := ownerOf(t, path); uid != 1000 || gid != 1001 {
				t.Errorf("attempt %d: %s belongs to %d:%d", attempt, filepath.Base(path), uid, gid)
			}
		}
	}
}

// TestKeepOnNFS: where root acts as another user and can't change owners, a folder may be used that is there, or that
// is its user's at once; one that is useless to the user isn't left behind.
func TestKeepOnNFS(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can act as another user")
	}
	there, absent := openFolder(t), filepath.Join(openFolder(t), "kept")
	for _, test := range []struct {
		folder string
		root   *account // as whom root acts
		fails  bool
	}{
		{there, &account{uid: 65534, gid: 65534}, false},
		{absent, &account{uid: 65534, gid: 65534}, true},
		{absent, &account{uid: 1000, gid: 1000}, false},
	} {
		i := &containerInstance{spec: domain.MemberSpec{
			Kept: test.folder, Files: []domain.File{{Name: "config.json", Content: "ours"}},
		}}
		i.spec.Container.User = "1000:1001"
		if err := test.root.do(i.keep); (err != nil) != test.fails {
			t.Errorf("%s as user %d: %v", test.folder, test.root.uid, err)
		}
		if _, err := os.Stat(filepath.Join(test.folder, "config.json")); (err != nil) != test.fails {
			t.Errorf("its file as user %d: %v", test.root.uid, err)
		}
	}
}

// TestOnlyOurs: on a FAT, where root can't change owners and the mount's options set all modes, a file may be for all.
func TestOnlyOurs(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), newName))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for mode, want := range map[os.FileMode]bool{0o755: false, 0o600: true} {
		if err := file.Chmod(mode); err != nil {
			t.Fatal(err)
		}
		if got := onlyOurs(file); got != want {
			t.Errorf("with mode %o: %t", mode, got)
		}
	}
}

// TestKeepWithoutChown: where root lacks the right to change owners on a disk of its own, a copy that the member's user
// can't read is an error, and isn't left behind.
func TestKeepWithoutChown(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root has the right to lose")
	}
	i := &containerInstance{spec: domain.MemberSpec{
		Kept: openFolder(t), Files: []domain.File{{Name: "config.json", Content: "ours"}},
	}}
	i.spec.Container.User = "1000:1001"
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this function
		header, rights := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
		err := unix.Capget(&header, &rights[0])
		rights[0].Effective &^= 1 << unix.CAP_CHOWN
		if err == nil {
			err = unix.Capset(&header, &rights[0])
		}
		if err == nil {
			err = i.keep()
		}
		done <- err
	}()
	if err := <-done; !errors.Is(err, fs.ErrPermission) {
		t.Errorf("it ends with %v", err)
	}
	if left, err := os.ReadDir(i.spec.Kept); err != nil || len(left) != 0 {
		t.Errorf("it leaves %v (%v)", left, err)
	}
}
