package domain

import (
	"path"
	"strings"
)

// Results is where the runs of a sweep leave files, and what happens to those.
type Results struct {
	// Path is a folder as runs see it: absolute, or relative to a run's own folder.
	Path string `json:"path"`
	// OnDestroy defaults to [KeepResults].
	OnDestroy ResultsOnDestroy `json:"on_destroy,omitempty"`
}

// ResultsOnDestroy is what happens to results when their sweep is destroyed.
type ResultsOnDestroy string

// What can happen to them.
const (
	KeepResults   ResultsOnDestroy = "keep"
	DeleteResults ResultsOnDestroy = "delete"
)

// ResultsOnDestroys lists the valid values.
var ResultsOnDestroys = []ResultsOnDestroy{KeepResults, DeleteResults}

// RunResults is where an attempt of a run leaves files.
type RunResults struct {
	// Path is the folder as the attempt sees it, absolute.
	Path string `json:"path"`
	// Mount is the mount that holds the folder; nil if the engine keeps it for the run alone.
	Mount *Mount `json:"mount,omitempty"`
}

// KeptFolder is a folder that outlives the member that wrote into it: [MemberSpec.Kept], or one in a mount.
type KeptFolder struct {
	Member string
	// Host is where the member ran.
	Host string
	// Path is where the member found it, absolute.
	Path string
	// Mount is the mount that holds it; nil if it is the member's alone.
	Mount *Mount
}

// OnHost returns the folder's path on its host: the member's own path, unless it is in a bind mount.
func (f KeptFolder) OnHost() string {
	if f.Mount == nil || f.Mount.Type != "" && f.Mount.Type != MountBind {
		return f.Path
	}
	below := strings.TrimPrefix(path.Clean(f.Path), strings.TrimSuffix(path.Clean(f.Mount.Target), "/"))
	return path.Join(f.Mount.Source, below)
}

// IsLocal reports whether a path stays below the folder that it starts in. Unlike filepath.IsLocal, it treats paths as
// a host does, whatever system this program runs on.
func IsLocal(at string) bool {
	cleaned := path.Clean(at)
	return at != "" && !path.IsAbs(at) && cleaned != ".." && !strings.HasPrefix(cleaned, "../")
}

// Covers reports whether a path is at or below the target of the mount.
func (m Mount) Covers(at string) bool {
	target := path.Clean(m.Target)
	return path.Clean(at) == target || strings.HasPrefix(path.Clean(at), strings.TrimSuffix(target, "/")+"/")
}

// MountOf returns the innermost of the mounts that cover a path; nil if none does.
func MountOf(mounts []Mount, at string) *Mount {
	var innermost *Mount
	for _, m := range mounts {
		if m.Covers(at) && (innermost == nil || innermost.Covers(m.Target)) {
			innermost = &m
		}
	}
	return innermost
}
