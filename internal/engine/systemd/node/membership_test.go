//go:build linux

package node

import (
	"os"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/layout"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/relay"
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

// TestJoinedLedger: a host keeps its copy only if that is of the same epoch; otherwise any other copy is newer.
func TestJoinedLedger(t *testing.T) {
	for name, c := range map[string]struct {
		own   relay.Ledger
		host  string
		epoch int
		want  int
	}{
		"a new host":           {relay.Ledger{}, "a", 1, -1},
		"the first store host": {relay.Ledger{}, "b", 1, 0},
		"a copy":               {relay.Ledger{Host: "a", Store: "b", Epoch: 1, Sequence: 90}, "a", 1, 90},
		"the store host":       {relay.Ledger{Host: "b", Store: "b", Epoch: 2, Sequence: 90}, "b", 2, 90},
		"a former store host":  {relay.Ledger{Host: "a", Store: "a", Epoch: 1, Sequence: 90}, "a", 2, -1},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := relay.Ledger{Host: c.host, Store: "b", Epoch: c.epoch}
			want := cluster
			want.Sequence = c.want
			if got := joined(c.own, cluster); got != want {
				t.Errorf("it is %+v, want %+v", got, want)
			}
		})
	}
}
