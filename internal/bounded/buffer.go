package bounded

import (
	"bytes"
	"strings"
)

// Buffer keeps what is written to it. A write beyond its limit fails with an [Error].
type Buffer struct {
	// Most is the limit in bytes.
	Most int

	kept bytes.Buffer
	err  error
}

func (b *Buffer) Write(text []byte) (int, error) {
	if b.kept.Len()+len(text) > b.Most {
		b.err = &Error{int64(b.Most)}
	}
	if b.err != nil {
		return 0, b.err
	}
	return b.kept.Write(text)
}

// Bytes returns what was written.
func (b *Buffer) Bytes() []byte { return b.kept.Bytes() }

// Err returns the error of the write that exceeded the limit.
func (b *Buffer) Err() error { return b.err }

// Tail keeps the end of what is written to it.
type Tail struct {
	// Most is how many bytes are kept.
	Most int

	kept []byte
}

func (t *Tail) Write(text []byte) (int, error) {
	written := len(text)
	text = text[max(0, len(text)-t.Most):]
	if over := len(t.kept) + len(text) - t.Most; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	t.kept = append(t.kept, text...)
	return written, nil
}

// String returns what is kept as valid UTF-8, without surrounding space.
func (t *Tail) String() string {
	return strings.ToValidUTF8(strings.TrimSpace(string(t.kept)), "\uFFFD")
}

// LastLine returns the last line that is not empty.
func (t *Tail) LastLine() string {
	text := t.String()
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}
