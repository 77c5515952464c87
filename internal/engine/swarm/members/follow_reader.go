package members

import (
	"bytes"
	"errors"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
)

const (
	// chunk is the size in bytes of the pieces in which an Engine stores a long line, each with the line's time.
	chunk = 16 << 10
	// disorder is by how much the times of a task's two streams may be out of order.
	disorder = time.Second
)

// errEnough stops the reading of a log once enough was read for one part.
var errEnough = errors.New("enough was read of the log")

// logReader collects the lines of a task after a mark, and moves the mark past them.
type logReader struct {
	mark    logMark
	left    int
	lines   []string
	streams [2]*logStream
}

func newLogReader(mark logMark) *logReader {
	r := &logReader{mark: mark, left: bounded.LogPart}
	r.streams = [2]*logStream{
		{reader: r, mark: &r.mark.Out, from: mark.Out},
		{reader: r, mark: &r.mark.Err, from: mark.Err},
	}
	return r
}

// since is the time from which lines are to be read; zero for all.
func (r *logReader) since() time.Time {
	latest := r.mark.Out.At
	if r.mark.Err.At.After(latest) {
		latest = r.mark.Err.At
	}
	if latest.IsZero() {
		return latest
	}
	return latest.Add(-disorder)
}

// end finishes the incomplete last lines.
func (r *logReader) end() {
	for _, s := range r.streams {
		if len(s.line) > 0 {
			s.end()
		}
	}
}

// logStream is one of a task's streams, of lines that each begin with their time.
type logStream struct {
	reader *logReader
	mark   *streamMark
	// from is the mark at which the reading began, and same the number of lines read since that have its time.
	from streamMark
	same int
	line []byte
	long bool
}

func (s *logStream) Write(text []byte) (int, error) {
	written := len(text)
	for len(text) > 0 {
		part, rest, ends := bytes.Cut(text, []byte("\n"))
		room := max(bounded.LogLine-len(s.line), 0)
		s.long = s.long || len(part) > room
		s.line, text = append(s.line, part[:min(len(part), room)]...), rest
		if !ends {
			break
		}
		s.end()
		if s.reader.left <= 0 {
			return 0, errEnough
		}
	}
	return written, nil
}

// end finishes a line, and takes it unless it was read before.
func (s *logStream) end() {
	at, text := timed(string(s.line))
	if s.long {
		text = strings.ToValidUTF8(text, "") + "…"
	}
	s.line, s.long = s.line[:0], false
	if at.IsZero() {
		at = s.mark.At
	}
	if at.Equal(s.from.At) {
		if s.same++; s.same <= s.from.Count {
			return
		}
	} else if at.Before(s.from.At) {
		return
	}
	s.mark.add(at)
	s.reader.lines, s.reader.left = append(s.reader.lines, strings.TrimSuffix(text, "\r")), s.reader.left-len(text)-1
}

// timed splits off a line's time, and removes it from between the line's joined pieces.
func timed(line string) (at time.Time, text string) {
	stamp, rest, _ := strings.Cut(line, " ")
	at, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil {
		return time.Time{}, line
	}
	for len(rest) > chunk && strings.HasPrefix(rest[chunk:], stamp+" ") {
		text, rest = text+rest[:chunk], rest[chunk+len(stamp)+1:]
	}
	return at, text + rest
}
