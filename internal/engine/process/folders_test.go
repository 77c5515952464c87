//go:build linux

package process

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// TestReadChangingFolder: what a running member removes meanwhile is left out, unless that is the folder itself.
func TestReadChangingFolder(t *testing.T) {
	for name, c := range map[string]struct {
		removed string
		want    []string
		err     error
	}{
		"nothing":        {"absent", []string{"a", "b", "b/1", "c"}, nil},
		"a folder":       {"b", []string{"a", "b", "c"}, nil},
		"a link":         {"c", []string{"a", "b", "b/1"}, nil},
		"the folder":     {".", []string{"a", "b"}, engine.ErrNotFound},
		"a file in that": {"b/1", []string{"a", "b", "c"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			root := filepath.Join(t.TempDir(), "results")
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			must(os.MkdirAll(filepath.Join(root, "b"), 0o700))
			must(os.WriteFile(filepath.Join(root, "a"), nil, 0o600))
			must(os.WriteFile(filepath.Join(root, "b/1"), nil, 0o600))
			must(os.Symlink("a", filepath.Join(root, "c")))
			var got []string
			err := (&Engine{}).ReadFolder(t.Context(), domain.KeptFolder{Member: "lr-1", Path: root},
				func(header *tar.Header, _ io.Reader) error {
					got = append(got, filepath.Clean(header.Name))
					if header.Name == "b" || header.Name == "b/" {
						return os.RemoveAll(filepath.Join(root, c.removed))
					}
					return nil
				})
			if !errors.Is(err, c.err) || !slices.Equal(got, c.want) {
				t.Errorf("read %q, %v, want %q, %v", got, err, c.want, c.err)
			}
		})
	}
}
