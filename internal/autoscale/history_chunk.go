package autoscale

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// A history is stored in chunks. A chunk is JSON, compressed with Zstandard (RFC 8878): a header line, and a line for
// each entry.

// HistoryKind is the kind of stored chunks. Their names are numbers.
var HistoryKind = domain.Kind{Name: "scaling-history", Noun: "part of the scaling history", MaxBytes: 400_000}

// Chunk is a part of a history as it is stored.
type Chunk struct {
	Name string
	Data []byte
}

// lastChunk is a number that no history reaches: one chunk per second for 30 years.
const lastChunk = 1_000_000_000

// maxUnpacked limits the size of an unpacked chunk, to a hundred times what was ever written to one.
const maxUnpacked = 256 << 20

func chunkName(number int) string { return strconv.Itoa(number) }

// chunkNumber returns the number in the name of a chunk.
func chunkNumber(name string) (int, error) {
	number, err := strconv.Atoi(name)
	if err != nil || number < 1 || number > lastChunk || chunkName(number) != name {
		return 0, &ChunkError{name, fmt.Errorf("its name is not a number from 1 to %d", lastChunk)}
	}
	return number, nil
}

// ChunkError reports a stored item that is not a readable chunk of a history.
type ChunkError struct {
	// Name is the name of the chunk.
	Name string
	Err  error
}

// Error names the chunk and the fault.
func (e *ChunkError) Error() string {
	return fmt.Sprintf("reading part %q of the scaling history: %v", e.Name, e.Err)
}

// Unwrap returns the fault itself.
func (e *ChunkError) Unwrap() error { return e.Err }

// chunkHead is the first line of a chunk.
type chunkHead struct {
	Version int `json:"version"`
}

// The encoder and the decoder keep neither state nor goroutines when they code whole texts. Their options are valid, so
// creating them can't fail.
var (
	packer = sync.OnceValue(func() *zstd.Encoder {
		e, _ := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedBetterCompression))
		return e
	})
	unpacker = sync.OnceValue(func() *zstd.Decoder {
		d, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxUnpacked))
		return d
	})
)

// pack encodes entries as a chunk.
func pack(entries []Entry) ([]byte, error) {
	var lines bytes.Buffer
	to := json.NewEncoder(&lines)
	to.SetEscapeHTML(false)
	if err := to.Encode(chunkHead{domain.DocumentVersion}); err != nil {
		return nil, err
	}
	for i := range entries {
		if err := to.Encode(&entries[i]); err != nil {
			return nil, fmt.Errorf("storing a decision of policy %s: %w", entries[i].Policy, err)
		}
	}
	return packer().EncodeAll(lines.Bytes(), nil), nil
}

// unpack decodes the entries of a chunk, of the selected policies.
func unpack(data []byte, s Selection) ([]Entry, error) {
	lines, err := unpacker().DecodeAll(data, nil)
	if err != nil {
		return nil, err
	}
	var head chunkHead
	var entries []Entry
	number, beginning := 0, s.beginning()
	for line := range bytes.Lines(lines) {
		if number++; number == 1 {
			if err := json.Unmarshal(line, &head); err != nil {
				return nil, fmt.Errorf("it has no valid version: %w", err)
			}
			if head.Version != domain.DocumentVersion {
				return nil, fmt.Errorf("it has version %d, and this version of Trainyard supports version %d",
					head.Version, domain.DocumentVersion)
			}
			continue
		}
		if !bytes.HasPrefix(line, beginning) {
			continue
		}
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if group, role := e.Key(); group == "" || role == "" || e.Decisions < 1 || e.Until.Before(e.At) {
			return nil, fmt.Errorf("line %d is not a decision of a policy", number)
		}
		if s.Covers(e.Policy) {
			entries = append(entries, e)
		}
	}
	if number == 0 {
		return nil, errors.New("it is empty")
	}
	return entries, nil
}

// beginning returns the text that lines of selected entries begin with. Decoding the others would take ten times as
// long.
func (s Selection) beginning() []byte {
	if s.Group == "" {
		return nil
	}
	return []byte(`{"policy":"` + s.Group + "/" + s.Role)
}

// lastIn returns when the last decision of these entries was made.
func lastIn(entries []Entry) (last time.Time) {
	for i := range entries {
		if entries[i].Until.After(last) {
			last = entries[i].Until
		}
	}
	return last
}
