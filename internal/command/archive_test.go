//go:build linux

package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
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
	must(t, setMode("/proc/self/status", 0o444))
	if err := setMode("/proc/self/status", 0o600); err == nil {
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
