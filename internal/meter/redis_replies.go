package meter

import (
	"bufio"
	"errors"
	"fmt"
	"net"

	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
)

// replies is a connection to a Redis that only lets through replies to SELECT and LLEN: one-line statuses, errors and
// numbers. The client would allocate memory for strings and lists of any claimed length, and recurse into nested lists
// until the stack overflows.
type replies struct {
	net.Conn

	lines *bufio.Reader
	// line is the unread rest of the current line.
	line []byte
}

func repliesOf(c net.Conn) *replies {
	return &replies{Conn: c, lines: bufio.NewReaderSize(c, bounded.ReplyLine)}
}

// Read reads from at most one line.
func (r *replies) Read(p []byte) (int, error) {
	if len(r.line) == 0 {
		line, err := r.lines.ReadSlice('\n')
		switch {
		case len(line) > 0 && line[0] != '+' && line[0] != '-' && line[0] != ':':
			return 0, fmt.Errorf("not a Redis reply to LLEN: it begins with %q", line[0])
		case errors.Is(err, bufio.ErrBufferFull):
			return 0, fmt.Errorf("a line of its answer has %w", &bounded.Error{Most: bounded.ReplyLine})
		case len(line) == 0:
			return 0, err
		}
		r.line = line // the reader repeats an error
	}
	n := copy(p, r.line)
	r.line = r.line[n:]
	return n, nil
}
