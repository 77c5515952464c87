//go:build linux

package statedir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// Read returns the document in a file: [engine.ErrNotFound] if there is no file or an empty one, which a power loss may
// make of a [Volatile] document, and [*engine.CorruptError] if it holds something else.
func Read[T any](path string) (document T, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(data) == 0 {
		return document, engine.ErrNotFound
	}
	if err != nil {
		return document, err
	}
	if err := json.Unmarshal(data, &document); err != nil {
		return document, &engine.CorruptError{Where: path, Err: err}
	}
	return document, nil
}

// Durability says whether a document has to survive a power loss.
type Durability bool

// The durabilities of a document.
const (
	// Durable documents are the desired state: they are flushed to disk.
	Durable Durability = true
	// Volatile documents are about processes, which don't survive a power loss either. What it leaves of one may be an
	// empty file, which counts as none.
	Volatile Durability = false
)

// Write replaces the document in a file atomically: a reader, even after a crash in the middle, finds the old document
// or the new one.
func Write(path string, document any, durability Durability) error {
	data, err := json.Marshal(document)
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return replace(path, data, ownerOnly, durability)
}

// ownerOnly are the permissions of files in a state directory.
const ownerOnly fs.FileMode = 0o600

// WriteFile replaces a file with these permissions, as [Write] replaces a durable document.
func WriteFile(path string, data []byte, mode fs.FileMode) error {
	return replace(path, data, mode, Durable)
}

func replace(path string, data []byte, mode fs.FileMode, durability Durability) (err error) {
	temporary, err := os.CreateTemp(filepath.Dir(path), temporaryPattern)
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temporary.Name())
			err = fmt.Errorf("%s can't be written and is left unchanged: %w", path, err)
		}
	}()
	_, err = temporary.Write(data)
	if err == nil && mode != ownerOnly {
		err = temporary.Chmod(mode)
	}
	if err == nil && durability == Durable {
		err = temporary.Sync()
	}
	if err = errors.Join(err, temporary.Close()); err != nil {
		return err
	}
	if err = os.Rename(temporary.Name(), path); err != nil || durability == Volatile {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// syncFolder flushes the names in a folder to disk. Tests replace it.
var syncFolder = func(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// abandonedAfter is the age from which a temporary file is assumed to belong to a writer that died.
const abandonedAfter = time.Minute

// Sweep deletes what writers that died left behind.
func (d Dir) Sweep(now time.Time) error {
	for _, folder := range append([]string{"."}, folders...) {
		left, err := filepath.Glob(d.Path(folder, temporaryPattern))
		if err != nil {
			return err
		}
		for _, path := range left {
			info, err := os.Stat(path)
			if err == nil && now.Sub(info.ModTime()) > abandonedAfter {
				err = Delete(path)
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// temporaryPattern is the name pattern of files that are being written.
const temporaryPattern = ".new-*"

// Delete removes a file, if it exists.
func Delete(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// syncDeletions flushes what was deleted from a folder, if that exists.
func syncDeletions(folder string) error {
	if err := syncFolder(folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
