//go:build linux

package node

import (
	"os"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/layout"
)

// TestClusterKey: the key stays, is replaced by a given one, and is a new one after a power loss has emptied the file.
func TestClusterKey(t *testing.T) {
	p := part{dir: statedir.Dir{Root: t.TempDir(), Cluster: "lab"}}
	if err := p.dir.Create(); err != nil {
		t.Fatal(err)
	}
	key := func(given string) string {
		t.Helper()
		private, public, err := p.clusterKey(given)
		if err != nil || public == "" {
			t.Fatalf("the public key is %q, %v", public, err)
		}
		if stored, err := os.ReadFile(p.dir.Path(layout.KeyFile)); err != nil || string(stored) != private {
			t.Errorf("stored is %q instead of %q, %v", stored, private, err)
		}
		return private
	}
	first := key("")
	if again := key(""); again != first {
		t.Error("the key has changed")
	}
	if err := os.Truncate(p.dir.Path(layout.KeyFile), 0); err != nil {
		t.Fatal(err)
	}
	if second := key(""); second == first {
		t.Error("the key is the lost one")
	}
	if given := key(first); given != first {
		t.Error("the given key is not used")
	}
}
