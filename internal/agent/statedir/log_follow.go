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

// logMark is the position of a reader in a log.
type logMark struct {
	// Offset is the position in the file that was read last, and Print a fingerprint of what precedes it, which differs
	// after a rotation.
	Offset int64  `json:"offset"`
	Print  string `json:"print,omitempty"`
	// Older means that it was the older of the two files.
	Older bool `json:"older,omitempty"`
}

// printed is how many bytes, at the start of a file and before an offset, a fingerprint covers.
const printed = 256

// FollowLog returns the lines of a member's log after a mark. Without a mark, it returns those since run, a run's
// recorded start, or all if that is zero.
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
	// The last line of an older log will not become any longer.
	mark.Older = older
	part.Lines, mark.Offset, part.More, err = readLines(file, mark.Offset, from.Rest || older)
	if err != nil {
		return part, err
	}
	if older && !part.More {
		mark, part.More = logMark{}, true // the log continues in the other file
	} else if mark.Print, err = fingerprint(file, mark.Offset); err != nil || mark.Offset > 0 && mark.Print == "" {
		return engine.LogPart{Next: from.Mark, More: err == nil}, err // it was rotated while being read
	}
	text, err := json.Marshal(mark)
	part.Next = string(text)
	return part, err
}

// placeIn returns the position from which to read, and whether that is in the older of a log's two files.
func (d Dir) placeIn(log, text string, run time.Time) (mark logMark, older bool, err error) {
	if text == "" {
		return firstPlace(log, run)
	}
	if err := json.Unmarshal([]byte(text), &mark); err != nil || mark.Offset < 0 {
		return mark, false, fmt.Errorf("invalid log position %q", text)
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
	// the log was rotated more than once since: continue with everything that is kept
	return firstPlace(log, time.Time{})
}

// firstPlace returns the position where the output since the start of a run begins.
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

// notedBefore returns the last size of a log that was recorded before any after a time: if the clock is set back later,
// nothing is skipped.
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
		if _, err := fmt.Sscan(lines.Text(), &at, &noted); err != nil {
			continue // the last line of an index whose writer died
		}
		if at > moment.UnixNano() {
			break
		}
		size, found = noted, true
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

// fingerprint identifies what precedes an offset. At the beginning of a file it is empty.
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

// readLines reads whole lines from an offset, and an incomplete last one if rest is set. It returns the offset after
// them, and whether there is more. A line longer than [bounded.LogLine] is returned in pieces.
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
