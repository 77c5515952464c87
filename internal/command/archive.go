package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/term"
)

// Archive writes an archive to a file, or to standard output if the name is "-". An existing file is only replaced once
// the archive is complete.
func Archive(file string, out io.Writer, write func(to io.Writer) error) error {
	if file == "-" {
		if to, is := out.(*os.File); is && term.IsTerminal(int(to.Fd())) {
			return errors.New("an archive is not written to a terminal: use --output FILE or a pipe")
		}
		return write(out)
	}
	return WriteFile(file, write)
}

// CheckFile returns why no file can be written at a path, as far as that shows beforehand.
func CheckFile(file string) error {
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		return fmt.Errorf("%s is a folder", file)
	}
	folder := filepath.Dir(file)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return fmt.Errorf("%s: folder %s does not exist", file, folder)
	}
	return nil
}

// WriteFile writes a file atomically: an existing file is only replaced once the content is complete, and a failure
// leaves nothing behind. It keeps its permissions and its group; a new file can be read only by its owner, as it may
// contain what members wrote. Devices and pipes are written directly, and so is what /dev/stdout leads to.
func WriteFile(file string, write func(to io.Writer) error) error {
	if err := CheckFile(file); err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err == nil && (!info.Mode().IsRegular() || strings.HasPrefix(filepath.Clean(file), "/dev/")) {
		to, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(to), to.Close())
	}
	if linked, err := filepath.EvalSymlinks(file); err == nil {
		file = linked // the file is replaced, not the link to it
	}
	partial, err := os.CreateTemp(filepath.Dir(file), ".partial-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(partial.Name()) }()
	err = write(partial)
	if err == nil && info != nil { // while it is open: others may have put a link at its path
		err = setMode(partial, keepOwner(partial, info))
	}
	if err := errors.Join(err, flush(partial), partial.Close()); err != nil {
		return err
	}
	return os.Rename(partial.Name(), file)
}

// flush writes a file through to its disk, where the file system can: some network and FUSE ones can't.
func flush(file *os.File) error {
	err := file.Sync()
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL) {
		return nil
	}
	return err
}

// setMode changes a file's permissions, unless they are right: some file systems have fixed ones, and refuse changes.
func setMode(file *os.File, mode os.FileMode) error {
	if info, err := file.Stat(); err == nil && info.Mode().Perm() == mode {
		return nil
	}
	return file.Chmod(mode)
}
