//go:build linux

package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Load is the memory that each worker holds, controlled by a file.
type Load struct {
	t *testing.T
	// File contains the number of MiB.
	File string
}

// NewLoad returns a load of 0.
func NewLoad(t *testing.T) *Load {
	t.Helper()
	l := &Load{t, filepath.Join(t.TempDir(), "load")}
	l.Set(0)
	return l
}

// Folder is the folder of the file.
func (l *Load) Folder() string { return filepath.Dir(l.File) }

// Set changes the load, and returns the time.
func (l *Load) Set(mib int) time.Time {
	l.t.Helper()
	// Atomically: a reader of half a number would hold a different amount.
	next := l.File + ".next"
	if err := os.WriteFile(next, fmt.Appendln(nil, mib), 0o600); err != nil {
		l.t.Fatal(err)
	}
	if err := os.Rename(next, l.File); err != nil {
		l.t.Fatal(err)
	}
	return time.Now()
}
