//go:build linux

package statedir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// maxLogSize is the size in bytes from which a log is rotated; one older log is kept.
const maxLogSize = 10 << 20

const (
	olderSuffix = ".1"
	// timesSuffix is the suffix of a log's index, with lines "<unix nanoseconds> <size>": the log had this size at that
	// time.
	timesSuffix = ".times"
)

func (d Dir) logFiles(member string) []string {
	log := d.Log(member)
	return []string{log, log + timesSuffix, log + olderSuffix, log + olderSuffix + timesSuffix}
}

// OpenLog opens a member's log for appending. Members write to it themselves, so that no process between them and their
// log can delay or end them.
func (d Dir) OpenLog(member string) (*os.File, error) {
	return os.OpenFile(d.Log(member), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
}

// KeepLog records the size of a member's log if it differs from last, rotates the log if it is full, and returns its
// size. A line written during the rotation itself may be lost, as with logrotate's copytruncate: the member keeps
// writing to the same file.
func (d Dir) KeepLog(member string, last int64, now time.Time) (size int64, err error) {
	log := d.Log(member)
	info, err := os.Stat(log)
	if err != nil || info.Size() == last {
		return last, err
	}
	index, err := os.OpenFile(log+timesSuffix, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return last, err
	}
	_, err = fmt.Fprintln(index, now.UnixNano(), info.Size())
	if err := errors.Join(err, index.Close()); err != nil || info.Size() < maxLogSize {
		return info.Size(), err
	}
	// What the member writes meanwhile is copied too, but it may write faster than this.
	if err := copyFile(log+olderSuffix, log, 2*info.Size()); err != nil {
		return info.Size(), err
	}
	if err := os.Rename(log+timesSuffix, log+olderSuffix+timesSuffix); err != nil {
		return info.Size(), err
	}
	return 0, os.Truncate(log, 0)
}

// copyFile copies a file, of which it reads at most some bytes.
func copyFile(target, source string, most int64) error {
	from, err := os.Open(source)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, io.LimitReader(from, most))
	return errors.Join(err, to.Close())
}

// ReadLog returns the lines of a member's log that the options select.
func (d Dir) ReadLog(member string, options engine.LogOptions) ([]string, error) {
	log := d.Log(member)
	lines := options.Lines()
	for _, path := range []string{log + olderSuffix, log} {
		if err := readLog(lines, path, options.Since); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		lines.End()
	}
	return lines.All(), nil
}

// readLog reads the lines of a file that were written since a time.
func readLog(lines io.Writer, path string, since time.Time) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if !since.IsZero() {
		start, err := sizeAt(path, since)
		if err != nil {
			return err
		}
		if _, err := file.Seek(start, io.SeekStart); err != nil {
			return err
		}
	}
	info, err := file.Stat()
	if err != nil {
		return err
	}
	_, err = io.Copy(lines, io.LimitReader(file, info.Size())) // the member may write faster than this reads
	return err
}

// sizeAt returns the last known size of a log before a time; 0 if there is none.
func sizeAt(log string, moment time.Time) (size int64, err error) {
	info, err := os.Stat(log)
	if err != nil {
		return 0, err
	}
	if info.ModTime().Before(moment) {
		return info.Size(), nil // even if a member ended before its last lines were recorded
	}
	size, _, err = notedBefore(log, moment)
	return size, err
}
