// Package install copies our programs to a host over SSH, each under a path that contains its digest. A file that is
// there is complete, never changes, and is not copied again.
package install

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/facts"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/layout"
)

// Program is one program, in builds for several architectures.
type Program struct {
	// Name is its name on hosts, such as "trainyard".
	Name string
	// Files are its files on this machine, by Go's name of the architecture.
	Files map[string]string
}

// Architectures returns the architectures of its builds, sorted.
func (p Program) Architectures() []string { return slices.Sorted(maps.Keys(p.Files)) }

// For returns the file for an architecture.
func (p Program) For(architecture string) (File, error) {
	from, known := p.Files[architecture]
	if !known {
		there := "none"
		if len(p.Files) > 0 {
			there = strings.Join(p.Architectures(), ", ")
		}
		return File{}, fmt.Errorf("no program %s for hosts with the architecture %s; available: %s. "+
			"Set the path of one in the provider's configuration: agent_binaries = { %s = \"PATH\" }",
			p.Name, architecture, there, architecture)
	}
	file, err := Open(p.Name, from)
	if err != nil {
		return File{}, fmt.Errorf("program %s for the architecture %s: %w", p.Name, architecture, err)
	}
	return file, nil
}

// File is a file of this machine that is to be installed on hosts.
type File struct {
	// Program identifies it there.
	facts.Program
	// From is its path on this machine.
	From string
}

// Path is the file's path on a host that has it.
func (f File) Path() string { return path.Join(layout.Programs, f.Digest, f.Name) }

// Open returns a file of this machine with its name on hosts. The content is read once per process, and again only
// after it changed.
func Open(name, from string) (File, error) {
	if name == "" || strings.HasPrefix(name, ".") || strings.ContainsFunc(name, notOfName) {
		return File{}, fmt.Errorf("%q is not a valid program name: use letters, digits, dots, hyphens and "+
			"underscores, not starting with a dot", name)
	}
	content, err := contentOf(from)
	if err != nil {
		return File{}, err
	}
	return File{Program: facts.Program{Digest: content.digest, Name: name, Bytes: content.size}, From: from}, nil
}

func notOfName(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-", r)
}

// content is the digest of a file's content, and the file's state when it was read.
type content struct {
	digest   string // "" for a file that has not been read
	size     int64
	modified time.Time
}

// contents are those of files, by path. Each is locked while it is read.
var (
	contentsMutex sync.Mutex
	contents      = map[string]*struct {
		sync.Mutex
		content
	}{}
)

// contentOf returns the current content of a file, which is read again if the file's size or time changed.
func contentOf(from string) (content, error) {
	contentsMutex.Lock()
	known := contents[from]
	if known == nil {
		known = new(struct {
			sync.Mutex
			content
		})
		contents[from] = known
	}
	contentsMutex.Unlock()

	known.Lock()
	defer known.Unlock()
	info, err := os.Stat(from)
	if err != nil {
		return content{}, err
	}
	if known.digest != "" && known.size == info.Size() && known.modified.Equal(info.ModTime()) {
		return known.content, nil
	}
	if !info.Mode().IsRegular() {
		return content{}, fmt.Errorf("%s is not a regular file", from)
	}
	file, err := os.Open(from)
	if err != nil {
		return content{}, err
	}
	defer file.Close()
	hash := sha256.New()
	size, err := io.Copy(hash, file)
	if err != nil {
		return content{}, err
	}
	known.content = content{digest: hex.EncodeToString(hash.Sum(nil)), size: size, modified: info.ModTime()}
	return known.content, nil
}
