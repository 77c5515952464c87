package domain

import (
	"path"
	"strings"
)

// Results is where the runs of a sweep leave files, and what becomes of those.
type Results struct {
	// Path is a folder as runs see it: relative to a run's own folder, or absolute.
	Path string `json:"path"`
	// OnDestroy is [KeepResults] where it is empty.
	OnDestroy ResultsOnDestroy `json:"on_destroy,omitempty"`
}

// ResultsOnDestroy is what becomes of results when their sweep is destroyed.
type ResultsOnDestroy string

// What becomes of them.
const (
	KeepResults   ResultsOnDestroy = "keep"
	DeleteResults ResultsOnDestroy = "delete"
)

// ResultsOnDestroys lists what results may name.
var ResultsOnDestroys = []ResultsOnDestroy{KeepResults, DeleteResults}

// RunResults is where an attempt of a run leaves files.
type RunResults struct {
	// Path is the folder as the attempt sees it, absolute.
	Path string `json:"path"`
	// Mount is what the folder is in; nil where the engine keeps it for the run alone.
	Mount *Mount `json:"mount,omitempty"`
}

// KeptFolder is a folder that outlives the member that wrote into it: [MemberSpec.Kept], or one in a mount.
type KeptFolder struct {
	Member string
	// Host is where the member ran.
	Host string
	// Path is where the member found it, absolute.
	Path string
	// Mount is what it is in; nil where it is the member's alone.
	Mount *Mount
}

// OnHost returns the path of the folder on its host: where the member found it, unless a folder of the host was
// mounted.
func (f KeptFolder) OnHost() string {
	if f.Mount == nil || f.Mount.Type != "" && f.Mount.Type != MountBind {
		return f.Path
	}
	below := strings.TrimPrefix(path.Clean(f.Path), strings.TrimSuffix(path.Clean(f.Mount.Target), "/"))
	return path.Join(f.Mount.Source, below)
}

// IsLocal reports whether a path of a host stays below the folder that it begins in, whatever system this program runs
// on.
func IsLocal(at string) bool {
	cleaned := path.Clean(at)
	return at != "" && !path.IsAbs(at) && cleaned != ".." && !strings.HasPrefix(cleaned, "../")
}

// Covers reports whether a path is at the target of the mount, or below it.
func (m Mount) Covers(at string) bool {
	target := path.Clean(m.Target)
	return path.Clean(at) == target || strings.HasPrefix(path.Clean(at), strings.TrimSuffix(target, "/")+"/")
}

// MountOf returns the innermost of some mounts that covers a path; nil where none does.
func MountOf(mounts []Mount, at string) *Mount {
	var innermost *Mount
	for _, m := range mounts {
		if m.Covers(at) && (innermost == nil || innermost.Covers(m.Target)) {
			innermost = &m
		}
	}
	return innermost
}
