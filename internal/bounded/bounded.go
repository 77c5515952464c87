// Package bounded limits outside input: how many bytes are read or kept, and how many connections a server keeps open,
// for how long. It holds every limit.
package bounded

import (
	"bytes"
	"fmt"
	"io"
)

// How many bytes each source may offer.
const (
	// Answer bounds what tells one value: a page, a query of a policy, what a command prints, what a hook answers.
	Answer = 1 << 20
	// Series bounds what a Prometheus answers to a query about a whole cluster, or about a range of time.
	Series = 16 << 20
	// ReplyLine bounds a line that a Redis replies.
	ReplyLine = 4 << 10
	// Headers bounds the headers of an HTTP answer or request.
	Headers = 64 << 10
	// Report bounds what the agent of one host tells: with 16 GPUs and 1,000 instances it has less.
	Report = 1 << 20
	// Reports bounds what all agents of a cluster tell.
	Reports = 16 << 20
	// History bounds what an agent reads of its predecessor's: with 1,000 instances it has some 10 MB.
	History = 64 << 20
	// LogLine bounds a line of a log.
	LogLine = 256 << 10
	// Log bounds what is kept of a member's log at once.
	Log = 32 << 20
	// LogPart bounds what is read of a member's log in one piece, beside its last line.
	LogPart = 1 << 20
	// ProgressLog bounds what a policy reads of a member's log.
	ProgressLog = 4 << 20
	// Message bounds one message of an Engine about its work on an image.
	Message = 1 << 20
	// Said bounds what is kept of the end of what a build said.
	Said = 64 << 10
	// Complaint bounds what is kept of the end of a program's standard error.
	Complaint = 4 << 10
	// Unpacked bounds what is unpacked of what the controller remembers.
	Unpacked = 64 << 20
)

// Error says that there is more than is read.
type Error struct {
	// Most is the number of bytes that are allowed.
	Most int64
}

// Error returns "more than N bytes", for callers to say of what.
func (e *Error) Error() string { return fmt.Sprintf("more than %d bytes", e.Most) }

// Reader returns a reader of at most so many bytes. Where there are more, it returns them, and then an [Error].
func Reader(r io.Reader, most int64) io.Reader { return &reader{from: r, left: most, most: most} }

type reader struct {
	from       io.Reader
	left, most int64
	err        error
}

func (r *reader) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	if int64(len(p)) > r.left+1 {
		p = p[:r.left+1] // the byte too many tells that there is more
	}
	n, err := r.from.Read(p)
	if int64(n) > r.left {
		n, err = int(r.left), &Error{r.most}
	}
	r.left -= int64(n)
	r.err = err
	return n, err
}

// Body is [Reader] for the body of an HTTP answer, also of one that is unpacked on the way.
func Body(body io.ReadCloser, most int64) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{Reader(body, most), body}
}

// ReadAll reads all that there is, at most so many bytes. Where there are more, the error is an [Error].
func ReadAll(r io.Reader, most int64) ([]byte, error) {
	var all bytes.Buffer
	_, err := all.ReadFrom(Reader(r, most))
	return all.Bytes(), err
}
