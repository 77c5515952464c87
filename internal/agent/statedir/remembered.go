//go:build linux

package statedir

import (
	"maps"
	"sync"
	"time"
)

// settled is the minimum age of a file's last write for its content to be cached: two writes have different stamps only
// if the file system's clock has ticked in between.
const settled = time.Second

// Remembered is a folder with cached documents, so that repeated reads only read those that have changed. It is safe
// for concurrent use. Callers share the documents and must not modify them.
type Remembered[T any] struct {
	dir    Dir
	folder string
	read   func(path string) (T, error)

	mu        sync.Mutex
	documents map[string]stamped[T]
}

// stamped is a document with the stamp of its file.
type stamped[T any] struct {
	stamp    Stamp
	document T
}

// Remember returns a folder with nothing cached yet, whose documents are read by a function such as [Read].
func Remember[T any](dir Dir, folder string, read func(path string) (T, error)) *Remembered[T] {
	return &Remembered[T]{dir: dir, folder: folder, read: read, documents: map[string]stamped[T]{}}
}

// List returns the documents of the folder as [Dir.List] does, and drops cached ones that are gone.
func (r *Remembered[T]) List() (map[string]Stamp, error) {
	return r.ListOf(func(string) bool { return true })
}

// ListOf returns the documents of the folder with wanted names, as [Remembered.List] does.
func (r *Remembered[T]) ListOf(wanted func(name string) bool) (map[string]Stamp, error) {
	listed, err := r.dir.ListOf(r.folder, wanted)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.documents, func(name string, _ stamped[T]) bool {
		_, there := listed[name]
		return wanted(name) && !there
	})
	return listed, nil
}

// Read returns a document that was listed with a stamp, or its current version, as [Read] does. For a document that was
// not listed, the stamp is zero.
func (r *Remembered[T]) Read(name string, stamp Stamp) (T, error) {
	r.mu.Lock()
	known, found := r.documents[name]
	r.mu.Unlock()
	if found && known.stamp == stamp {
		return known.document, nil
	}
	begun := time.Now()
	document, err := r.read(r.dir.Document(r.folder, name))
	if err == nil && stamp != (Stamp{}) && begun.Sub(stamp.Modified) >= settled {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.documents[name] = stamped[T]{stamp, document}
	}
	return document, err
}
