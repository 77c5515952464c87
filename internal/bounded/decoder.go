package bounded

import (
	"encoding/json"
	"io"
)

// Decoder reads an endless stream of JSON values of limited size.
type Decoder struct {
	from *portion
	json *json.Decoder
}

// NewDecoder returns a decoder of values of at most this many bytes. A longer one is an [Error].
func NewDecoder(r io.Reader, most int64) *Decoder {
	from := &portion{from: r, most: most}
	return &Decoder{from, json.NewDecoder(from)}
}

// Decode reads the next value. After the last one it returns [io.EOF].
func (d *Decoder) Decode(value any) error {
	d.from.left = d.from.most
	return d.json.Decode(value)
}

// portion is a reader with a limit per value. What is read ahead counts for the next one.
type portion struct {
	from       io.Reader
	left, most int64
}

func (p *portion) Read(text []byte) (int, error) {
	if p.left == 0 {
		return 0, &Error{p.most}
	}
	n, err := p.from.Read(text[:min(int64(len(text)), p.left)])
	p.left -= int64(n)
	return n, err
}
