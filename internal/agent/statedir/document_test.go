//go:build linux

package statedir

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// create returns the state directory of a new cluster.
func create(t *testing.T) Dir {
	t.Helper()
	d := Dir{Root: t.TempDir(), Cluster: "lab"}
	must(t, d.Create())
	return d
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(t, os.WriteFile(path, []byte(content), 0o600))
}

func TestReadWhatWasWritten(t *testing.T) {
	path := create(t).Document(Specs, "mnist-ps-0")
	for _, durability := range []Durability{Durable, Volatile} {
		for _, want := range []domain.MemberSpec{
			{
				Group: "mnist", Name: "mnist-ps-0", Run: 1, Env: map[string]string{"TOKEN": "secret"},
				GracePeriod: domain.Duration(time.Second),
			},
			{Run: 2}, // shorter than the previous one
		} {
			must(t, Write(path, want, durability))
			got, err := Read[domain.MemberSpec](path)
			must(t, err)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("document (-want +got):\n%s", diff)
			}
		}
	}
	wantAlone(t, path)
}

// wantAlone checks that only the owner can access a file, and that its folder has no other.
func wantAlone(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	must(t, err)
	if mode := info.Mode().Perm(); mode != 0o600 {
		t.Errorf("a document that may hold secrets has mode %o", mode)
	}
	if names := filesIn(t, filepath.Dir(path)); len(names) != 1 {
		t.Errorf("beside the document there are %v", names)
	}
}

func filesIn(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func TestReadFaults(t *testing.T) {
	d := create(t)
	if _, err := Read[Stop](d.Document(Stops, "absent")); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("a document that is not there: %v, not ErrNotFound", err)
	}
	if _, err := Read[Stop](d.Path("no", "such", "folder.json")); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("a document in a folder that is not there: %v, not ErrNotFound", err)
	}
	for name, content := range map[string]string{
		"cut": `{"run":1,"rea`, "text": "hello", "list": "[]", "wrong-type": `{"run":"one"}`,
		"twice": `{"run":1}{"run":2}`, "zeros": "\x00\x00",
	} {
		path := d.Document(Stops, name)
		write(t, path, content)
		_, err := Read[Stop](path)
		var corrupt *engine.CorruptError
		if !errors.As(err, &corrupt) || corrupt.Where != path || !strings.Contains(err.Error(), path) ||
			errors.Is(err, engine.ErrNotFound) {
			t.Errorf("a document that is %s: %v, not a CorruptError with its path", name, err)
		}
		if left, err := os.ReadFile(path); err != nil || string(left) != content {
			t.Errorf("a document that is %s was changed to %q (%v)", name, left, err)
		}
	}
	// A file that can't be read is neither corrupt nor gone.
	folder := d.Document(Stops, "folder")
	must(t, os.Mkdir(folder, 0o700))
	_, err := Read[Stop](folder)
	var corrupt *engine.CorruptError
	if err == nil || errors.As(err, &corrupt) || errors.Is(err, engine.ErrNotFound) ||
		!strings.Contains(err.Error(), folder) {
		t.Errorf("a folder in the place of a document: %v", err)
	}
}

// TestEmptyDocuments: a power loss may leave an empty file of a document that was not flushed, as if there were none.
// Items are flushed, so an empty one is an error.
func TestEmptyDocuments(t *testing.T) {
	d := create(t)
	for _, folder := range []string{Staged, Starts, Specs, Stops, States, Documents, Records} {
		write(t, d.Document(folder, "mnist-ps-0"), "")
		listed, err := d.List(folder)
		must(t, err)
		names, err := d.Names(folder)
		must(t, err)
		if suffixIn(folder) == itemSuffix {
			if _, found := listed["mnist-ps-0"]; !found || !names["mnist-ps-0"] {
				t.Errorf("an empty item is not listed in %s: %v, %v", folder, listed, names)
			}
			continue
		}
		if _, err := Read[Stop](d.Document(folder, "mnist-ps-0")); !errors.Is(err, engine.ErrNotFound) {
			t.Errorf("an empty document in %s: %v, not ErrNotFound", folder, err)
		}
		if len(listed)+len(names) > 0 {
			t.Errorf("an empty document is listed in %s: %v, %v", folder, listed, names)
		}
	}
}

func TestWriteFaultsLeaveTheOldDocument(t *testing.T) {
	old := Start{Run: 1}
	for name, c := range map[string]struct {
		document any
		// spoil makes writing impossible, and restore undoes that.
		spoil, restore func(t *testing.T, path string)
	}{
		"an unwritable folder": {
			Start{Run: 2},
			func(t *testing.T, path string) { must(t, os.Chmod(filepath.Dir(path), 0o500)) },
			func(t *testing.T, path string) { must(t, os.Chmod(filepath.Dir(path), 0o700)) },
		},
		"no such folder": {
			Start{Run: 2},
			func(t *testing.T, path string) { must(t, os.Rename(filepath.Dir(path), filepath.Dir(path)+"-away")) },
			func(t *testing.T, path string) { must(t, os.Rename(filepath.Dir(path)+"-away", filepath.Dir(path))) },
		},
		"what is no document": {math.NaN(), func(*testing.T, string) {}, func(*testing.T, string) {}},
	} {
		t.Run(name, func(t *testing.T) {
			path := create(t).Document(Starts, "mnist")
			must(t, Write(path, old, Durable))
			c.spoil(t, path)
			err := asOrdinaryUser(func() error { return Write(path, c.document, Durable) })
			c.restore(t, path)
			if err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("the error does not name %s: %v", path, err)
			}
			if got, err := Read[Start](path); err != nil || !reflect.DeepEqual(got, old) {
				t.Errorf("left is %+v (%v), not the old document", got, err)
			}
			if names := filesIn(t, filepath.Dir(path)); len(names) != 1 {
				t.Errorf("left are %v", names)
			}
		})
	}
}

// TestWriteFaultLeavesNothingBehind makes the last step of a write fail.
func TestWriteFaultLeavesNothingBehind(t *testing.T) {
	path := create(t).Document(Starts, "mnist")
	must(t, os.MkdirAll(filepath.Join(path, "in-the-way"), 0o700))
	err := Write(path, Start{Run: 2}, Volatile)
	if err == nil || !strings.Contains(err.Error(), path+" can't be written and is left unchanged") {
		t.Errorf("the error is %v", err)
	}
	if names := filesIn(t, filepath.Dir(path)); !cmp.Equal(names, []string{"mnist.json"}) {
		t.Errorf("left are %v", names)
	}
}

// asOrdinaryUser calls a function without root's privileges on files, so that their mode applies.
func asOrdinaryUser(do func() error) error {
	if os.Geteuid() != 0 {
		return do()
	}
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this goroutine
		const nobody = 65534
		if err := unix.Setfsuid(nobody); err != nil {
			result <- err
			return
		}
		result <- do()
	}()
	return <-result
}

// TestWriteIsAtomic has readers read while documents of different lengths replace each other.
func TestWriteIsAtomic(t *testing.T) {
	path := create(t).Document(Stops, "mnist-ps-0")
	short, long := Stop{
		Run: 1, Reason: domain.StopFailed,
	}, Stop{Run: 2, Reason: domain.StopReason(strings.Repeat("x", 1<<16))}
	must(t, Write(path, short, Volatile))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 200 {
			if err := Write(path, []Stop{long, short}[i%2], Volatile); err != nil {
				t.Error(err)
			}
		}
	}()
	for {
		got, err := Read[Stop](path)
		if err != nil || got != short && got != long {
			t.Fatalf("a reader found neither the old nor the new document: run %d, reason of %d bytes, %v", got.Run,
				len(got.Reason), err)
		}
		select {
		case <-done:
			return
		default:
		}
	}
}

func TestDelete(t *testing.T) {
	path := create(t).Document(Starts, "mnist")
	must(t, Write(path, Start{}, Volatile))
	must(t, Delete(path))
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("a deleted file: %v", err)
	}
	must(t, Delete(path))
	must(t, os.MkdirAll(filepath.Join(path, "in-the-way"), 0o700))
	if err := Delete(path); err == nil {
		t.Error("what can't be deleted is no error")
	}
}

func FuzzRead(f *testing.F) {
	for _, content := range []string{
		"", "null", "{}", "[]", `{"version":1,"spec":{"roles":{"ps":{"replicas":2,"grace_period":"5s"}}}}`,
		`{"spec":{"roles":{"ps":{"grace_period":"soon"}}}}`, `{"version":1e99}`,
	} {
		f.Add([]byte(content))
	}
	path := filepath.Join(f.TempDir(), "group.json")
	f.Fuzz(func(t *testing.T, content []byte) {
		must(t, os.WriteFile(path, content, 0o600))
		document, err := Read[domain.GroupDocument](path)
		if err != nil {
			if len(content) == 0 && errors.Is(err, engine.ErrNotFound) {
				return
			}
			var corrupt *engine.CorruptError
			if !errors.As(err, &corrupt) || corrupt.Where != path {
				t.Fatalf("%q: %v, not a CorruptError with its path", content, err)
			}
			return
		}
		// A document that was read can be written, and is the same again.
		must(t, Write(path, document, Volatile))
		again, err := Read[domain.GroupDocument](path)
		must(t, err)
		if !again.Spec.Equal(document.Spec) {
			t.Fatalf("%q is read as %+v, and after a write as %+v", content, document, again)
		}
	})
}
