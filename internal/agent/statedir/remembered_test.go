//go:build linux

package statedir

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// TestRemembered: the result is always what is in the file, which is read only if it may have changed.
func TestRemembered(t *testing.T) {
	d := create(t)
	path := d.Document(Stops, "a")
	r := Remember(d, Stops, Read[Stop])
	// put writes a run, as if some time ago; a negative time keeps it young however long the test takes.
	put := func(run string, ago time.Duration) {
		t.Helper()
		write(t, path, `{"run": `+run+`}`)
		at := time.Now().Add(-ago)
		must(t, os.Chtimes(path, at, at))
	}
	want := func(step string, run int) {
		t.Helper()
		listed, err := r.List()
		must(t, err)
		if stop, err := r.Read("a", listed["a"]); err != nil || stop.Run != run {
			t.Errorf("%s: run %d (%v), not %d", step, stop.Run, err, run)
		}
	}
	put("1", time.Hour)
	want("at first", 1)
	put("2", time.Minute)
	want("changed to as many bytes", 2)

	info, err := os.Stat(path)
	must(t, err)
	put("3", time.Minute)
	must(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
	want("a file that says it has not changed is not read", 2)
	put("44", time.Minute)
	must(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
	want("another size", 44)

	put("55", -time.Hour)
	want("just written", 55)
	if info, err = os.Stat(path); err != nil {
		t.Fatal(err)
	}
	put("66", -time.Hour)
	must(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
	want("and again, before the clock ticked", 66)

	put("77", time.Hour)
	if stop, err := r.Read("a", Stamp{}); err != nil || stop.Run != 77 {
		t.Errorf("what was not listed: run %d (%v), not 77", stop.Run, err)
	}
	must(t, os.Remove(path))
	if _, err := r.Read("a", Stamp{}); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("what was not listed, and is gone: %v", err)
	}
	put("88", time.Hour)
	want("back", 88)
	must(t, os.Remove(path))
	if listed, err := r.List(); err != nil || len(listed) != 0 || len(r.documents) != 0 {
		t.Errorf("gone, and there are %v (%v), and remembered %v", listed, err, r.documents)
	}
	put("x", time.Hour)
	listed, err := r.List()
	must(t, err)
	if _, err := r.Read("a", listed["a"]); err == nil {
		t.Error("a corrupt document is no error")
	}
	if len(r.documents) != 0 {
		t.Errorf("what could not be read is remembered: %v", r.documents)
	}
}
