//go:build linux

package statedir

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// noteEvery is the time, by its messages, for which a log may grow until its size is recorded.
const noteEvery = time.Second

// LogCopy is a member's log that is copied from another place, message by message, with their times. The log's index
// records the progress: after a crash, a new copy loses nothing, and writes nothing twice.
type LogCopy struct {
	dir        Dir
	member     string
	log, index *os.File
	size       int64
	// skip is how much of the next messages is in the log already.
	skip int64
	// since is the time of the last recorded message, last that of the last message, and whole is set if that is
	// complete.
	since, last time.Time
	whole       bool
}

// CopyLog opens a member's log for a copy that begins now.
func (d Dir) CopyLog(member string, now time.Time) (*LogCopy, error) {
	c, err := d.openCopy(member)
	if err != nil {
		return nil, err
	}
	c.last, c.whole = now, true
	if err := c.note(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// ContinueLog opens a member's log for a copy that was started earlier, by any process.
func (d Dir) ContinueLog(member string) (*LogCopy, error) {
	c, err := d.openCopy(member)
	if err != nil {
		return nil, err
	}
	log := d.Log(member)
	noted, found, err := lastNote(log + timesSuffix)
	if err == nil && !found {
		noted, _, err = lastNote(log + olderSuffix + timesSuffix) // it died right after a rotation
		noted.size = 0
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	c.since, c.last, c.whole, c.skip = noted.at, noted.at, true, max(0, c.size-noted.size)
	return c, nil
}

func (d Dir) openCopy(member string) (*LogCopy, error) {
	c := &LogCopy{dir: d, member: member}
	var err error
	if c.log, err = d.OpenLog(member); err != nil {
		return nil, err
	}
	c.index, err = os.OpenFile(d.Log(member)+timesSuffix, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, errors.Join(err, c.log.Close())
	}
	info, err := c.log.Stat()
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	c.size = info.Size()
	return c, nil
}

// noted is a line of an index.
type noted struct {
	at   time.Time
	size int64
}

// lastNote returns the last line of an index.
func lastNote(index string) (last noted, found bool, err error) {
	content, err := os.ReadFile(index)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return last, false, err
	}
	for lines := bufio.NewScanner(bytes.NewReader(content)); lines.Scan(); {
		var at, size int64
		if _, err := fmt.Sscan(lines.Text(), &at, &size); err == nil {
			last, found = noted{time.Unix(0, at), size}, true
		}
	}
	return last, found, nil
}

// Since is the time from which messages have yet to be copied; zero for all.
func (c *LogCopy) Since() time.Time {
	if c.since.IsZero() {
		return c.since
	}
	return c.since.Add(time.Nanosecond)
}

// Write adds a message to the log: a line, or a part of one.
func (c *LogCopy) Write(at time.Time, text []byte) error {
	// The parts of a line all have its time, so a copy can only continue after a complete line.
	if c.whole && at.After(c.last) {
		if at.Sub(c.since) >= noteEvery && c.last.After(c.since) && c.skip == 0 {
			if err := c.note(); err != nil {
				return err
			}
		}
	}
	there := min(c.skip, int64(len(text)))
	c.skip -= there
	n, err := c.log.Write(text[there:])
	c.size += int64(n)
	if err != nil {
		c.whole = false // the copy is continued with this message
		return err
	}
	c.last, c.whole = at, len(text) > 0 && text[len(text)-1] == '\n'
	return nil
}

// note records the current size, and rotates the log if it is full.
func (c *LogCopy) note() error {
	if _, err := fmt.Fprintln(c.index, c.last.UnixNano(), c.size); err != nil {
		return err
	}
	c.since = c.last
	if c.size < maxLogSize {
		return nil
	}
	log := c.dir.Log(c.member)
	if err := errors.Join(os.Rename(log, log+olderSuffix), os.Rename(log+timesSuffix, log+olderSuffix+timesSuffix),
		c.close()); err != nil {
		return err
	}
	next, err := c.dir.openCopy(c.member)
	if err != nil {
		return err
	}
	c.log, c.index, c.size = next.log, next.index, 0
	_, err = fmt.Fprintln(c.index, c.since.UnixNano(), 0)
	return err
}

// Close ends the copy, which can be continued.
func (c *LogCopy) Close() error {
	var err error
	if c.whole && c.skip == 0 && c.last.After(c.since) {
		err = c.note()
	}
	return errors.Join(err, c.close())
}

func (c *LogCopy) close() error { return errors.Join(c.log.Close(), c.index.Close()) }
