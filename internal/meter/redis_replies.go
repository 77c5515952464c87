package meter

import (
	"bufio"
	"errors"
	"fmt"
	"net"

	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
)

// replies is a connection to a Redis that lets through what it may reply to SELECT and LLEN: lines that are a status,
// an error, or a number. The client would take memory for a text or a list of whatever length is claimed, and follow
// lists in lists until its stack is full.
type replies struct {
	net.Conn

	lines *bufio.Reader
	// line is what has not been read yet of the current one.
	line []byte
}

func repliesOf(c net.Conn) *replies {
	return &replies{Conn: c, lines: bufio.NewReaderSize(c, bounded.ReplyLine)}
}

// Read reads from one line at most.
func (r *replies) Read(p []byte) (int, error) {
	if len(r.line) == 0 {
		line, err := r.lines.ReadSlice('\n')
		switch {
		case len(line) > 0 && line[0] != '+' && line[0] != '-' && line[0] != ':':
			return 0, fmt.Errorf("what begins with %q is no answer of a Redis to LLEN", line[0])
		case errors.Is(err, bufio.ErrBufferFull):
			return 0, fmt.Errorf("a line of its answer has %w", &bounded.Error{Most: bounded.ReplyLine})
		case len(line) == 0:
			return 0, err
		}
		r.line = line // an error after it comes again
	}
	n := copy(p, r.line)
	r.line = r.line[n:]
	return n, nil
}
