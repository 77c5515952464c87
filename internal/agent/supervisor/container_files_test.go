//go:build linux

package supervisor

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// TestKeepReplacesLinks: a member's file replaces what an earlier attempt has put at its place, or at that of its
// temporary file, and leaves alone what that refers to.
func TestKeepReplacesLinks(t *testing.T) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, plant := range map[string]func(target, at string) error{
		"symbolic": os.Symlink, "hard": os.Link,
		"to nothing": func(target, at string) error { return os.Symlink(target+".absent", at) },
	} {
		t.Run(name, func(t *testing.T) {
			others := filepath.Join(t.TempDir(), "passwd")
			must(os.WriteFile(others, []byte("theirs"), 0o600))
			i := &containerInstance{spec: domain.MemberSpec{
				Kept: filepath.Join(t.TempDir(), "kept"), Files: []domain.File{{Name: "config.json", Content: "ours"}},
			}}
			must(i.keep())
			file := filepath.Join(i.spec.Kept, "config.json")
			must(os.Remove(file))
			must(plant(others, file))
			must(plant(others, filepath.Join(i.spec.Kept, newName)))
			must(i.keep())
			content := func(path string) string {
				t.Helper()
				text, err := os.ReadFile(path)
				must(err)
				return string(text)
			}
			if theirs, ours := content(others), content(file); theirs != "theirs" || ours != "ours" {
				t.Errorf("the other file has %q, the member's %q", theirs, ours)
			}
			for folder, want := range map[string][]string{
				i.spec.Kept: {"config.json"}, filepath.Dir(others): {"passwd"},
			} {
				entries, err := os.ReadDir(folder)
				must(err)
				var names []string
				for _, entry := range entries {
					names = append(names, entry.Name())
				}
				if !slices.Equal(names, want) {
					t.Errorf("%s has %q, want %q", folder, names, want)
				}
			}
		})
	}
}

// TestKeepAgain: at a later attempt, too, the files belong to the member's user.
func TestKeepAgain(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make files of other users")
	}
	i := &containerInstance{spec: domain.MemberSpec{
		Kept: filepath.Join(t.TempDir(), "kept"), Files: []domain.File{{Name: "config.json", Content: "ours"}},
	}}
	i.spec.Container.User = "1000:1001"
	for attempt := range 2 {
		if err := i.keep(); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{i.spec.Kept, filepath.Join(i.spec.Kept, "config.json")} {
			if uid, gid := ownerOf(t, path); uid != 1000 || gid != 1001 {
				t.Errorf("attempt %d: %s belongs to %d:%d", attempt, filepath.Base(path), uid, gid)
			}
		}
	}
}
