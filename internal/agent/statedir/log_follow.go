//go:build linux

package statedir

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// logMark is where a reader of a log has come to.
type logMark struct {
	// Offset is that in the file that was read last, and Print is a fingerprint of what stands before it: a log that
	// was rotated has something else there.
	Offset int64  `json:"offset"`
	Print  string `json:"print,omitempty"`
	// Older tells that it was the older of the two files.
	Older bool `json:"older,omitempty"`
}

// printed is how many of the first and of the last bytes before an offset a fingerprint is of.
const printed = 256

// FollowLog returns the lines of a member's log after a mark; without one, those since the start of a run that the
// supervisor noted, or all where that is the zero time.
func (d Dir) FollowLog(member string, from engine.LogPlace, run time.Time) (engine.LogPart, error) {
	log := d.Log(member)
	mark, older, err := d.placeIn(log, from.Mark, run)
	if err != nil {
		return engine.LogPart{}, err
	}
	var part engine.LogPart
	path := log
	if older {
		path = log + olderSuffix
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return engine.LogPart{Next: from.Mark}, nil
	}
	if err != nil {
		return part, err
	}
	defer file.Close()
	// The last line of an older log is as whole as it will ever be.
	mark.Older = older
	part.Lines, mark.Offset, part.More, err = readLines(file, mark.Offset, from.Rest || older)
	if err != nil {
		return part, err
	}
	if older && !part.More {
		mark, part.More = logMark{}, true // the log goes on in the other file
	} else if mark.Print, err = fingerprint(file, mark.Offset); err != nil || mark.Offset > 0 && mark.Print == "" {
		return engine.LogPart{Next: from.Mark, More: err == nil}, err // it was rotated while it was read
	}
	text, err := json.Marshal(mark)
	part.Next = string(text)
	return part, err
}

// placeIn returns where to go on reading, and whether that is in the older of the two files of a log.
func (d Dir) placeIn(log, text string, run time.Time) (mark logMark, older bool, err error) {
	if text == "" {
		return firstPlace(log, run)
	}
	if err := json.Unmarshal([]byte(text), &mark); err != nil || mark.Offset < 0 {
		return mark, false, fmt.Errorf("%q is not a mark of a log", text)
	}
	if !mark.Older {
		found, err := hasMark(log, mark)
		if err != nil || found {
			return mark, false, err
		}
	}
	found, err := hasMark(log+olderSuffix, mark)
	if err != nil || found {
		return mark, true, err
	}
	return firstPlace(log, time.Time{}) // more was written meanwhile than is kept: go on with all that is
}

// firstPlace returns where what was written since the start of a run begins.
func firstPlace(log string, run time.Time) (mark logMark, older bool, err error) {
	if run.IsZero() {
		_, err := os.Stat(log + olderSuffix)
		if errors.Is(err, fs.ErrNotExist) {
			return logMark{}, false, nil
		}
		return logMark{}, true, err
	}
	for _, file := range []struct {
		path  string
		older bool
	}{{log, false}, {log + olderSuffix, true}} {
		size, found, err := notedBefore(file.path, run)
		if err != nil || found {
			return logMark{Offset: size}, file.older, err
		}
	}
	return firstPlace(log, time.Time{})
}

// notedBefore returns the last size of a log that was noted no later than a moment.
func notedBefore(log string, moment time.Time) (size int64, found bool, err error) {
	index, err := os.Open(log + timesSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	defer index.Close()
	for lines := bufio.NewScanner(index); lines.Scan(); {
		var at, noted int64
		if _, err := fmt.Sscan(lines.Text(), &at, &noted); err == nil && at <= moment.UnixNano() {
			size, found = noted, true
		}
	}
	return size, found, nil
}

// hasMark reports whether a file is the one in which a mark was set.
func hasMark(path string, mark logMark) (bool, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || info.Size() < mark.Offset {
		return false, err
	}
	found, err := fingerprint(file, mark.Offset)
	return found == mark.Print, err
}

// fingerprint tells what stands before an offset from what else may stand there. At the beginning of a file it is
// empty.
func fingerprint(file io.ReaderAt, offset int64) (string, error) {
	size := min(offset, printed)
	if size == 0 {
		return "", nil
	}
	sum := fnv.New128a()
	for _, start := range []int64{0, offset - size} {
		n, err := io.Copy(sum, io.NewSectionReader(file, start, size))
		if err != nil || n < size { // it was truncated meanwhile
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// readLines reads whole lines from an offset on, and the beginning of one where rest says so. It returns the offset
// behind them, and whether there is more. A line that is longer than [bounded.LogLine] is returned in pieces.
func readLines(file io.ReaderAt, offset int64, rest bool) (lines []string, next int64, more bool, err error) {
	text := make([]byte, bounded.LogPart)
	n, err := file.ReadAt(text, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, offset, false, err
	}
	more = err == nil
	for text = text[:n]; len(text) > 0; {
		line, after, ends := bytes.Cut(text, []byte("\n"))
		switch {
		case len(line) > bounded.LogLine:
			line, after = text[:bounded.LogLine], text[bounded.LogLine:]
			offset += bounded.LogLine
		case ends:
			offset += int64(len(line)) + 1
		case rest && !more:
			offset += int64(len(line))
		default:
			return lines, offset, more, nil
		}
		lines, text = append(lines, string(bytes.TrimSuffix(line, []byte("\r")))), after
	}
	return lines, offset, more, nil
}
