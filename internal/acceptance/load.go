//go:build linux

package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Load is the memory that each worker holds, told by a file.
type Load struct {
	t *testing.T
	// File says how many MiB.
	File string
}

// NewLoad returns a load of nothing.
func NewLoad(t *testing.T) *Load {
	t.Helper()
	l := &Load{t, filepath.Join(t.TempDir(), "load")}
	l.Set(0)
	return l
}

// Folder is where the file is.
func (l *Load) Folder() string { return filepath.Dir(l.File) }

// Set changes the load, and returns when.
func (l *Load) Set(mib int) time.Time {
	l.t.Helper()
	// In one step: who reads half of a number holds another amount.
	next := l.File + ".next"
	if err := os.WriteFile(next, fmt.Appendln(nil, mib), 0o600); err != nil {
		l.t.Fatal(err)
	}
	if err := os.Rename(next, l.File); err != nil {
		l.t.Fatal(err)
	}
	return time.Now()
}
