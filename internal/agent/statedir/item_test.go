//go:build linux

package statedir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

var (
	clusterItem = engine.Item{Key: engine.Key{Kind: domain.ClusterKind}, Revision: 1, Data: []byte("{}")}
	policyKey   = engine.Key{Kind: domain.PolicyKind, Name: "mnist/ps"}
	shardKey    = engine.Key{Kind: domain.Kind{Name: "shard"}, Name: "7"}
)

func TestReadItemThatWasWritten(t *testing.T) {
	for file, key := range map[string]engine.Key{
		"documents/cluster.item": clusterItem.Key, "documents/policy.mnist.ps.item": policyKey,
		"records/shard.7.item": shardKey,
	} {
		d := create(t)
		path := d.Path(file)
		if d.Item(key) != path {
			t.Errorf("%s is in %s, not in %s", key, d.Item(key), path)
		}
		if got, is := KeyOf(key.Kind, strings.TrimSuffix(filepath.Base(file), ".item")); got != key || !is {
			t.Errorf("%s is taken for %s (%t)", file, got, is)
		}
		for _, want := range []engine.Item{
			{Key: key, Revision: 9, Data: []byte("\n{\"revision\":2}\n\x00\xff"), Where: path},
			{Key: key, Revision: 10, Data: []byte("a"), Where: path}, // shorter than the previous one
		} {
			must(t, d.WriteItem(want))
			got, err := ReadItem(path)
			must(t, err)
			got.Key = key
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("item (-want +got):\n%s", diff)
			}
		}
		wantAlone(t, path)
	}
}

// TestKeyOfOtherKinds: the name of one kind may be a prefix of another's.
func TestKeyOfOtherKinds(t *testing.T) {
	for _, document := range []string{"policy-note.mnist", "cluster", "polic", "policies", ""} {
		if key, is := KeyOf(domain.PolicyKind, document); is {
			t.Errorf("%q is taken for %s", document, key)
		}
	}
}

func TestReadItemFaults(t *testing.T) {
	d := create(t)
	path := d.Item(policyKey)
	if _, err := ReadItem(path); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("an item that is not there: %v, not ErrNotFound", err)
	}
	for name, c := range map[string]struct{ content, reason string }{
		"empty":               {"", "unexpected end"},
		"a document":          {`{"version":1,"spec":{}}`, "its first line has revision 0"},
		"cut in its header":   {`{"revision":`, "unexpected end"},
		"cut after it":        {"{\"revision\":1}\n", "nothing after its first line"},
		"of no revision":      {"{\"revision\":0}\na", "its first line has revision 0"},
		"of another revision": {"{\"revision\":\"1\"}\na", "cannot unmarshal string"},
		"of zeros":            {"\x00\x00", "invalid character"},
	} {
		write(t, path, c.content)
		_, err := ReadItem(path)
		corrupt, is := errors.AsType[*engine.CorruptError](err)
		if !is || corrupt.Where != path || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("an item that is %s: %v, not a CorruptError with its path that says %q", name, err, c.reason)
		}
		if left, err := os.ReadFile(path); err != nil || string(left) != c.content {
			t.Errorf("an item that is %s was changed to %q (%v)", name, left, err)
		}
	}
}

func FuzzReadItem(f *testing.F) {
	for _, content := range []string{"", "{}", "{\"revision\":1}\n{}", "{\"revision\":1e99}\n{}", "null\na", "\n"} {
		f.Add([]byte(content))
	}
	d := Dir{Root: f.TempDir(), Cluster: "lab"}
	if err := d.Create(); err != nil {
		f.Fatal(err)
	}
	path := d.Item(shardKey)
	f.Fuzz(func(t *testing.T, content []byte) {
		must(t, os.WriteFile(path, content, 0o600))
		item, err := ReadItem(path)
		if err != nil {
			if corrupt, is := errors.AsType[*engine.CorruptError](err); !is || corrupt.Where != path {
				t.Fatalf("%q: %v, not a CorruptError with its path", content, err)
			}
			return
		}
		// An item that was read can be written, and is the same again.
		item.Key = shardKey
		must(t, d.WriteItem(item))
		again, err := ReadItem(path)
		must(t, err)
		again.Key = shardKey
		if diff := cmp.Diff(item, again); diff != "" || item.Revision < 1 || len(item.Data) == 0 {
			t.Fatalf("%q is read as %+v, and after a write as %+v", content, item, again)
		}
	})
}

// TestDeletionsAreDurable: what is deleted is flushed to disk afterwards, if what was there had been.
func TestDeletionsAreDurable(t *testing.T) {
	withdraw := func(durability Durability) func(Dir) error {
		return func(d Dir) error {
			_, err := d.Withdraw([]string{"mnist-ps-0", "mnist-ps-1"}, durability)
			return err
		}
	}
	item := func(folder string) func(Dir) error {
		return func(d Dir) error { return DeleteItem(d.Document(folder, ItemName(policyKey))) }
	}
	for name, c := range map[string]struct {
		deletion func(d Dir) error
		// deleted is gone when its folder is flushed; flushed are the folders.
		deleted string
		flushed []string
	}{
		"an item":        {item(Documents), "policy.mnist.ps.item", []string{Documents}},
		"all items":      {Dir.RemoveItems, "policy.mnist.ps.item", []string{Records, Documents}},
		"members":        {withdraw(Durable), "mnist-ps-0.json", []string{Specs}},
		"fleeting ones":  {withdraw(Volatile), "", nil},
		"another folder": {item("none"), "", []string{"none"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := create(t)
			must(t, d.WriteItem(engine.Item{Key: policyKey, Revision: 1, Data: []byte("{}")}))
			must(t, Write(d.Document(Specs, "mnist-ps-0"), domain.MemberSpec{Name: "mnist-ps-0"}, Durable))
			var flushed []string
			flush := syncFolder
			t.Cleanup(func() { syncFolder = flush })
			syncFolder = func(folder string) error {
				flushed = append(flushed, filepath.Base(folder))
				if _, err := os.Stat(filepath.Join(folder, c.deleted)); c.deleted != "" && !os.IsNotExist(err) {
					t.Errorf("%s is flushed before %s is gone (%v)", folder, c.deleted, err)
				}
				return flush(folder)
			}
			must(t, c.deletion(d))
			if diff := cmp.Diff(c.flushed, flushed); diff != "" {
				t.Errorf("folders that were flushed (-want +got):\n%s", diff)
			}
		})
	}
}
