//go:build linux

package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func writeText(to io.Writer) error {
	_, err := io.WriteString(to, "new")
	return err
}

// TestWriteFile: a file is replaced once its content is complete, and a link keeps leading to it.
func TestWriteFile(t *testing.T) {
	folder := t.TempDir()
	file, link := filepath.Join(folder, "file"), filepath.Join(folder, "link")
	must(t, os.WriteFile(file, []byte("old"), 0o600))
	must(t, os.Symlink(file, link))
	broken := errors.New("broken")
	if err := WriteFile(file, func(io.Writer) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("it ends with %v", err)
	}
	contains := func(want string) {
		t.Helper()
		content, err := os.ReadFile(file)
		if must(t, err); string(content) != want {
			t.Errorf("the file contains %q, want %q", content, want)
		}
	}
	contains("old")
	must(t, WriteFile(link, writeText))
	contains("new")
	if left, err := os.ReadDir(folder); err != nil || len(left) != 2 {
		t.Errorf("it leaves %v (%v)", left, err)
	}
}

// TestWriteFilePermissions: a replaced file keeps its permissions, and only its owner can read a new one.
func TestWriteFilePermissions(t *testing.T) {
	folder := t.TempDir()
	link := filepath.Join(folder, "link")
	must(t, os.Symlink(filepath.Join(folder, "shared"), link))
	for _, c := range []struct {
		file          string
		before, after os.FileMode
	}{{"new", 0, 0o600}, {"shared", 0o664, 0o664}, {"link", 0, 0o664}, {"fixed", 0o444, 0o444}} {
		file := filepath.Join(folder, c.file)
		if c.before != 0 {
			must(t, os.WriteFile(file, []byte("old"), 0o600))
			must(t, os.Chmod(file, c.before))
		}
		must(t, WriteFile(file, writeText))
		info, err := os.Stat(file)
		if must(t, err); info.Mode() != c.after {
			t.Errorf("%s has %v, want %v", c.file, info.Mode(), c.after)
		}
	}
}

// TestWriteFileGroup: a replaced file keeps its owner and group. If it can't, no other group gets more access than all
// others have.
func TestWriteFileGroup(t *testing.T) {
	const uid, gid = 65530, 65531
	file := filepath.Join(t.TempDir(), "shared")
	for _, mode := range []os.FileMode{0o640, 0o644} {
		must(t, os.WriteFile(file, []byte("old"), 0o600))
		must(t, os.Chmod(file, mode))
		if err := os.Chown(file, uid, gid); err != nil {
			t.Skipf("only root can change owners: %v", err)
		}
		before, err := os.Stat(file)
		must(t, err)
		must(t, WriteFile(file, writeText))
		after, err := os.Stat(file)
		must(t, err)
		owner := after.Sys().(*syscall.Stat_t) //nolint:forcetypeassert // on Linux
		if after.Mode() != mode || owner.Uid != uid || owner.Gid != gid {
			t.Errorf("it has %v of %d:%d", after.Mode(), owner.Uid, owner.Gid)
		}
		closed, err := os.Open(file)
		must(t, err)
		must(t, closed.Close())
		if got, want := keepOwner(closed, before), mode&0o604|mode<<3&0o040; got != want {
			t.Errorf("without its group, a file of %v gets %v, want %v", mode, got, want)
		}
	}
}

// TestWriteFileElsewhere: whoever may write to the folder can't make it change what a link leads to.
func TestWriteFileElsewhere(t *testing.T) {
	folder, others := t.TempDir(), filepath.Join(t.TempDir(), "shadow")
	file := filepath.Join(folder, "report")
	must(t, os.WriteFile(others, []byte("theirs"), 0o600))
	must(t, os.WriteFile(file, []byte("old"), 0o600))
	must(t, os.Chmod(file, 0o644))
	_ = os.Chown(file, 65530, 65531) // only root can do that
	before, err := os.Stat(others)
	must(t, err)
	must(t, WriteFile(file, func(to io.Writer) error {
		partial, err := filepath.Glob(filepath.Join(folder, ".partial-*"))
		if err != nil || len(partial) != 1 {
			return fmt.Errorf("the partial file is %v (%w)", partial, err)
		}
		return errors.Join(writeText(to), os.Remove(partial[0]), os.Symlink(others, partial[0]))
	}))
	after, err := os.Stat(others)
	must(t, err)
	owner := func(of os.FileInfo) uint32 { return of.Sys().(*syscall.Stat_t).Uid } //nolint:forcetypeassert // on Linux
	if after.Mode() != before.Mode() || owner(after) != owner(before) {
		t.Errorf("the other file had %v of %d, and has %v of %d", before.Mode(), owner(before), after.Mode(),
			owner(after))
	}
}

// TestLimitedFileSystems: a complete file doesn't fail where writing through is unsupported, as with a pipe, or where
// permissions are fixed, as in /proc.
func TestLimitedFileSystems(t *testing.T) {
	read, written, err := os.Pipe()
	must(t, err)
	defer read.Close()
	must(t, flush(written))
	must(t, written.Close())
	if err := flush(written); !errors.Is(err, os.ErrClosed) {
		t.Errorf("flushing a closed file ends with %v", err)
	}
	status, err := os.Open("/proc/self/status")
	must(t, err)
	defer status.Close()
	must(t, setMode(status, 0o444))
	if err := setMode(status, 0o600); err == nil {
		t.Error("permissions that can't be changed are no error")
	}
}

// TestWriteNoFile: a folder is refused before the work, and what is no regular file is written, not replaced.
func TestWriteNoFile(t *testing.T) {
	folder := t.TempDir()
	err := WriteFile(folder, func(io.Writer) error {
		t.Error("it works for nothing")
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "is a folder") {
		t.Errorf("a folder: %v", err)
	}

	read, written, err := os.Pipe()
	must(t, err)
	defer read.Close()
	link := filepath.Join(folder, "stdout")
	must(t, os.Symlink(fmt.Sprintf("/dev/fd/%d", written.Fd()), link))
	must(t, WriteFile(link, writeText))
	must(t, written.Close())
	if content, err := io.ReadAll(read); err != nil || string(content) != "new" {
		t.Errorf("the pipe has %q (%v)", content, err)
	}

	// As with --output /dev/stdout >> all.
	all, err := os.Create(filepath.Join(folder, "all"))
	must(t, err)
	defer all.Close()
	_, err = all.WriteString("old ")
	must(t, err)
	must(t, WriteFile(fmt.Sprintf("/dev/fd/%d", all.Fd()), writeText))
	if content, err := os.ReadFile(all.Name()); err != nil || string(content) != "old new" {
		t.Errorf("the file has %q (%v)", content, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
