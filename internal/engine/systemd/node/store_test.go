//go:build linux

package node

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/relay"
)

// TestRestoreOver: a store host that has changed gives up its store to nobody who lacks the change. A host that has
// stepped down, perhaps in an earlier attempt, is restored.
func TestRestoreOver(t *testing.T) {
	over := &relay.Ledger{Host: "a", Store: "a", Epoch: 1, Sequence: 7}
	for name, c := range map[string]struct {
		own  relay.Ledger
		over *relay.Ledger
		want error
	}{
		"unchanged":         {relay.Ledger{Host: "a", Store: "a", Epoch: 1, Sequence: 7}, over, nil},
		"changed":           {relay.Ledger{Host: "a", Store: "a", Epoch: 1, Sequence: 8}, over, relay.ErrChanged},
		"changed, whatever": {relay.Ledger{Host: "a", Store: "a", Epoch: 1, Sequence: 8}, nil, nil},
		"partly restored":   {relay.Ledger{Host: "a", Store: "b", Epoch: 2, Sequence: -1}, over, nil},
		"restored":          {relay.Ledger{Host: "a", Store: "b", Epoch: 2, Sequence: 7}, over, nil},
		"deposed by others": {relay.Ledger{Host: "a", Store: "c", Epoch: 3}, over, relay.ErrDeposed},
	} {
		t.Run(name, func(t *testing.T) {
			p := part{dir: statedir.Dir{Root: t.TempDir(), Cluster: "lab"}}
			if err := errors.Join(p.dir.Create(), p.writeLedger(c.own)); err != nil {
				t.Fatal(err)
			}
			err := p.restore(t.Context(), relay.Contents{
				Ledger: relay.Ledger{Host: "b", Store: "b", Epoch: 2, Sequence: 7}, Over: c.over,
			})
			if !errors.Is(err, c.want) {
				t.Fatalf("it ends with %v, want %v", err, c.want)
			}
			want := c.own
			if c.want == nil {
				want = relay.Ledger{Host: "a", Store: "b", Epoch: 2, Sequence: 7}
			}
			if got, err := p.ledger(); err != nil || got != want {
				t.Errorf("the ledger is %+v (%v), want %+v", got, err, want)
			}
		})
	}
}

// TestRestore: items that are as they should be stay, others are replaced, and the rest is deleted.
func TestRestore(t *testing.T) {
	p := part{dir: statedir.Dir{Root: t.TempDir(), Cluster: "lab"}}
	item := func(name string, revision int, data string) engine.Item {
		return engine.Item{Key: engine.Key{Kind: domain.GroupKind, Name: name}, Revision: revision, Data: []byte(data)}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(p.dir.Create())
	must(p.writeLedger(relay.Ledger{Host: "a", Store: "b", Epoch: 1, Sequence: 3}))
	past := time.Unix(1, 0)
	for _, name := range []string{"same", "old", "other", "gone"} {
		has := item(name, 1, "a")
		must(p.dir.WriteItem(has))
		must(os.Chtimes(p.dir.Item(has.Key), past, past))
	}
	broken := item("broken", 1, "e")
	must(os.WriteFile(p.dir.Item(broken.Key), nil, 0o600))
	want := []engine.Item{item("same", 1, "a"), item("old", 2, "a"), item("other", 1, "x"), item("new", 1, "y"), broken}
	must(p.restore(t.Context(), relay.Contents{
		Ledger: relay.Ledger{Host: "b", Store: "b", Epoch: 1, Sequence: 8}, Items: want,
	}))
	for _, item := range want {
		got, err := statedir.ReadItem(p.dir.Item(item.Key))
		if err != nil || got.Revision != item.Revision || string(got.Data) != string(item.Data) {
			t.Errorf("%s is %+v (%v)", item.Name, got, err)
		}
	}
	if found, err := p.items(); err != nil || len(found) != len(want) {
		t.Errorf("there are %+v (%v)", found, err)
	}
	info, err := os.Stat(p.dir.Item(item("same", 1, "").Key))
	must(err)
	if !info.ModTime().Equal(past) {
		t.Error("what was the same is written again")
	}
}
