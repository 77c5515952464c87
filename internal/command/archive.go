package command

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/term"
)

// Archive has an archive written to a file, or where that is "-" to the standard output. What is in the file already is
// not written over before all is read.
func Archive(file string, out io.Writer, write func(to io.Writer) error) error {
	if file == "-" {
		if to, is := out.(*os.File); is && term.IsTerminal(int(to.Fd())) {
			return errors.New("an archive is not for a terminal: write it to a file by --output FILE, or into a pipe")
		}
		return write(out)
	}
	return WriteFile(file, write)
}

// WriteFile has a file written as a whole: what is in it already is not written over before all is there, and nothing
// is left where that fails.
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
