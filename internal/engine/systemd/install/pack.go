package install

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"sync"
)

// packings are compressed files by digest, for the life of the process: all hosts get the same bytes.
var (
	packingsMutex sync.Mutex
	packings      = map[string]*struct {
		sync.Mutex
		packed []byte
	}{}
)

// packedFile returns the content of a file, compressed with gzip. It fails if that has another digest by now.
func packedFile(ctx context.Context, file File) ([]byte, error) {
	packingsMutex.Lock()
	known := packings[file.Digest]
	if known == nil {
		known = new(struct {
			sync.Mutex
			packed []byte
		})
		packings[file.Digest] = known
	}
	packingsMutex.Unlock()

	known.Lock()
	defer known.Unlock()
	if known.packed != nil {
		return known.packed, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err // another host's upload has failed meanwhile
	}
	content, err := os.Open(file.From)
	if err != nil {
		return nil, err
	}
	defer content.Close()
	hash := sha256.New()
	packed, err := pack(io.TeeReader(content, hash))
	if err != nil {
		return nil, err
	}
	if hex.EncodeToString(hash.Sum(nil)) != file.Digest {
		return nil, errors.New("the file has changed during the apply: run terraform apply again")
	}
	known.packed = packed
	return packed, nil
}

// pack returns compressed content.
func pack(content io.Reader) ([]byte, error) {
	var packed bytes.Buffer
	packer, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed) // the network is slower than even this
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(packer, content); err != nil {
		return nil, err
	}
	if err := packer.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}
