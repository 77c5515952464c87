package bounded

import (
	"bytes"
	"strings"
)

// lineOverhead is the memory of a line beside its bytes, which limits empty lines, too.
const lineOverhead = 16

// cutOff marks the end of a line that was longer than [LogLine].
const cutOff = "…"

// Lines collects the lines of what is written to it. A write that exceeds the limit fails with an [Error].
type Lines struct {
	// Tail is how many of the last lines are kept; 0 for all.
	Tail int
	// Most is the limit in bytes.
	Most int64

	lines []string
	size  int64
	line  []byte
	// begun is set while a line has not ended, and long if line only holds its start.
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

// End ends an unfinished line.
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

// All returns the lines, including an unfinished last one.
func (l *Lines) All() []string {
	l.End()
	return l.lines
}

func cost(line string) int64 { return int64(len(line)) + lineOverhead }
