package bounded

import (
	"bytes"
	"strings"
)

// lineOverhead is what a line takes beside its bytes, so that empty ones have a bound, too.
const lineOverhead = 16

// cutOff ends a line that was longer than [LogLine].
const cutOff = "…"

// Lines collects the lines of what is written to it. A write fails with an [Error] where they would take too much.
type Lines struct {
	// Tail is the number of lines that are kept, the last ones; 0 for all.
	Tail int
	// Most is the number of bytes that there is room for.
	Most int64

	lines []string
	size  int64
	line  []byte
	// begun tells that there is a line that has not ended, and long that not all of it is in line.
	begun, long bool
}

func (l *Lines) Write(text []byte) (int, error) {
	written := len(text)
	for len(text) > 0 {
		part, rest, ends := bytes.Cut(text, []byte("\n"))
		room := LogLine - len(l.line)
		l.long = l.long || len(part) > room
		l.line, l.begun, text = append(l.line, part[:min(len(part), room)]...), true, rest
		if ends {
			l.End()
		}
		if l.size > l.Most {
			return 0, &Error{l.Most}
		}
	}
	return written, nil
}

// End ends a line that has begun.
func (l *Lines) End() {
	if !l.begun {
		return
	}
	line := string(bytes.TrimSuffix(l.line, []byte("\r")))
	if l.long {
		line = strings.ToValidUTF8(line, "") + cutOff
	}
	l.lines, l.size = append(l.lines, line), l.size+cost(line)
	l.line, l.begun, l.long = l.line[:0], false, false
	if l.Tail > 0 && len(l.lines) > l.Tail {
		l.size -= cost(l.lines[0])
		l.lines[0], l.lines = "", l.lines[1:]
	}
}

// All returns the lines, the last one also where it has not ended.
func (l *Lines) All() []string {
	l.End()
	return l.lines
}

func cost(line string) int64 { return int64(len(line)) + lineOverhead }
