// Package bounded limits outside input: how many bytes are read or kept, and how many connections a server keeps open,
// for how long. It holds every limit.
package bounded

import (
	"bytes"
	"fmt"
	"io"
)

// Limits in bytes, by source.
const (
	// Answer limits sources of a single value: a JSON endpoint, a query of a policy, the output of a command, the
	// answer of a hook.
	Answer = 1 << 20
	// Series limits the answer of a Prometheus about a whole cluster or a range of time.
	Series = 16 << 20
	// ReplyLine limits a line of a Redis reply.
	ReplyLine = 4 << 10
	// Headers limits the headers of an HTTP request or response.
	Headers = 64 << 10
	// Report limits the report of one host's agent: with 16 GPUs and 1,000 instances it stays below.
	Report = 1 << 20
	// Reports limits the reports of all agents of a cluster.
	Reports = 16 << 20
	// History limits what an agent reads of its predecessor's history: with 1,000 instances that is about 10 MB.
	History = 64 << 20
	// LogLine limits a line of a log.
	LogLine = 256 << 10
	// Log limits how much of a member's log is kept at once.
	Log = 32 << 20
	// LogPart limits how much of a member's log is read at once, not counting its last line.
	LogPart = 1 << 20
	// ProgressLog limits how much of a member's log a policy reads.
	ProgressLog = 4 << 20
	// Message limits one progress message of a Docker Engine about an image.
	Message = 1 << 20
	// Said limits how much of the end of a build's output is kept.
	Said = 64 << 10
	// Complaint limits how much of the end of a program's standard error is kept.
	Complaint = 4 << 10
	// Unpacked limits the decompressed state that the controller stores.
	Unpacked = 64 << 20
)

// Error means that there is more than the limit.
type Error struct {
	// Most is the limit in bytes.
	Most int64
}

// Error returns "more than N bytes"; the caller adds of what.
func (e *Error) Error() string { return fmt.Sprintf("more than %d bytes", e.Most) }

// Reader returns a reader of at most this many bytes. If there are more, it returns an [Error] after them.
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
		p = p[:r.left+1] // one byte more shows whether there is more
	}
	n, err := r.from.Read(p)
	if int64(n) > r.left {
		n, err = int(r.left), &Error{r.most}
	}
	r.left -= int64(n)
	r.err = err
	return n, err
}

// Body is [Reader] for an HTTP body, including one that is decompressed on the way.
func Body(body io.ReadCloser, most int64) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{Reader(body, most), body}
}

// ReadAll reads everything, up to this many bytes. If there are more, the error is an [Error].
func ReadAll(r io.Reader, most int64) ([]byte, error) {
	var all bytes.Buffer
	_, err := all.ReadFrom(Reader(r, most))
	return all.Bytes(), err
}
