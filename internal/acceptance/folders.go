//go:build linux

package acceptance

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/filesource"
)

// The folders of this repository, relative to a package of tests.
const (
	Examples = "../../../examples"
	Modules  = "../../../modules"
)

// WithModules copies the modules into a workspace.
func WithModules(w *acctest.Workspace) {
	w.Helper()
	if err := Copy(filepath.Join(w.Dir, "modules"), Modules); err != nil {
		w.Fatal(err)
	}
}

// Dockerfiles returns the paths of the Dockerfiles in the folders of another one, and a level deeper, relative to it.
func Dockerfiles(folder string) (found []string, err error) {
	for _, depth := range []string{"*", "*/*"} {
		files, err := fs.Glob(os.DirFS(folder), depth+"/Dockerfile*")
		if err != nil {
			return nil, err
		}
		found = append(found, files...)
	}
	return found, nil
}

// Copy copies a folder of this repository, without what git ignores: an environment, settings and the state of a user
// who tried an example.
func Copy(to, folder string) error {
	ignored, err := os.ReadFile("../../../.gitignore")
	if err != nil {
		return err
	}
	source := filesource.Source{Path: folder, Excludes: strings.Split(string(ignored), "\n")}
	content, err := source.Read(context.Background())
	if err != nil {
		return err
	}
	for _, file := range content.Tree {
		path := filepath.Join(to, file.Path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // members are not all root
			return err
		}
		if file.Link != "" {
			if err := os.Symlink(file.Link, path); err != nil {
				return err
			}
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, file.Path))
		if err != nil {
			return err
		}
		mode := os.FileMode(0o644)
		if file.Executable {
			mode = 0o755
		}
		if err := os.WriteFile(path, text, mode); err != nil {
			return err
		}
	}
	return nil
}

var onBareHosts = regexp.MustCompile(`(?m)^\s*engine\s*=\s*"systemd"`)

// OnBareHosts reports whether a configuration has a cluster on bare hosts.
func OnBareHosts(configuration []byte) bool { return onBareHosts.Match(configuration) }
