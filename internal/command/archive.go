package command

import (
	"errors"
	"io"
	"os"
	"path/filepath"

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

// WriteFile writes a file atomically: an existing file is only replaced once the content is complete, and a
// failure leaves nothing behind.
func WriteFile(file string, write func(to io.Writer) error) error {
	partial, err := os.CreateTemp(filepath.Dir(file), ".partial-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(partial.Name()) }()
	if err := errors.Join(write(partial), partial.Close()); err != nil {
		return err
	}
	return os.Rename(partial.Name(), file)
}
