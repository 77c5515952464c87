//go:build linux

package node

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
)

// TestClustersLetInAtTheSameTime: clusters that join and leave one host concurrently leave each other's lines, and
// foreign ones, as they are.
func TestClustersLetInAtTheSameTime(t *testing.T) {
	const clusters, rounds = 8, 20
	login, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	login.HomeDir = t.TempDir()
	file := filepath.Join(login.HomeDir, ".ssh", "authorized_keys")
	if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("ssh-ed25519 AAAA ada\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	var comeAndGo sync.WaitGroup
	failed := make([]error, clusters)
	for i := range clusters {
		p := part{dir: statedir.Dir{Root: root, Cluster: fmt.Sprint("lab", i)}}
		comeAndGo.Go(func() {
			for range rounds {
				failed[i] = errors.Join(failed[i], p.letIn(login, "ssh-ed25519 key"), p.letIn(login, ""))
			}
			if i%2 == 0 {
				failed[i] = errors.Join(failed[i], p.letIn(login, "ssh-ed25519 key"))
			}
		})
	}
	comeAndGo.Wait()
	if err := errors.Join(failed...); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var marks []string
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		marks = append(marks, fields[len(fields)-1])
	}
	slices.Sort(marks)
	if want := []string{"ada", "lab0", "lab2", "lab4", "lab6"}; !slices.Equal(want, marks) {
		t.Errorf("the file has lines of %v, not %v:\n%s", marks, want, content)
	}
}
