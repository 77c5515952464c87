package install

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"sync"
)

// packings are files compressed with gzip, by digest. Each is compressed once per process, however many hosts it is
// uploaded to, and locked meanwhile.
var (
	packingsMutex sync.Mutex
	packings      = map[string]*struct {
		sync.Mutex
		packed []byte
	}{}
)

// packedFile returns the compressed content of a file that has not changed since it was opened.
func packedFile(file File) ([]byte, error) {
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
	if found := hex.EncodeToString(hash.Sum(nil)); found != file.Digest {
		return nil, fmt.Errorf("its digest is %s, no longer %s: the file was changed meanwhile; "+
			"run terraform apply again", found, file.Digest)
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
