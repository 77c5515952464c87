//go:build linux

package statedir

import (
	"maps"
	"sync"
	"time"
)

// settled is how long before it was read a file has to have been written last for what was read to be remembered: a
// stamp tells two writes apart only where a file system's clock does.
const settled = time.Second

// Remembered is a folder whose documents are remembered, so that whoever looks again and again reads only those that
// have changed. It may be used by several goroutines. Whoever is given a document shares it: nothing in it is to be
// changed.
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

// Remember returns a folder of which nothing is remembered yet, and whose documents are read by a function such as
// [Read].
func Remember[T any](dir Dir, folder string, read func(path string) (T, error)) *Remembered[T] {
	return &Remembered[T]{dir: dir, folder: folder, read: read, documents: map[string]stamped[T]{}}
}

// List returns the documents of the folder as [Dir.List] does, and forgets those that are gone.
func (r *Remembered[T]) List() (map[string]Stamp, error) {
	return r.ListOf(func(string) bool { return true })
}

// ListOf returns the documents of the folder, as [Remembered.List] does, whose names are wanted.
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

// Read returns a document that was listed with a stamp, or what is there by now, as [Read] does. The stamp of one that
// was not listed is the zero one.
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
