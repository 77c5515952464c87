package autoscale

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// small are sizes that a few entries fill.
var small = sizes{closed: 1500, late: 3000, most: 4000, all: 1 << 20}

// store is where chunks are stored.
type store map[string][]byte

// take stores and removes what an archive wants stored and removed, up to the first failure.
func (s store) take(a *Archive, now time.Time, fails func(name string) bool) error {
	put, remove, err := a.Pack(now)
	for _, c := range put {
		if fails(c.Name) {
			return err
		}
		s[c.Name] = c.Data
		a.Stored(c.Name)
	}
	for _, name := range remove {
		if fails(name) {
			return err
		}
		delete(s, name)
		a.Removed(name)
	}
	return err
}

func never(string) bool { return false }

// opened returns the archive of what is stored, which has to be readable.
func opened(t testing.TB, s store, now time.Time, with sizes) *Archive {
	t.Helper()
	a, err := openArchive(s, now, with)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestArchiveProperty checks that, however often an archive is stored, fails to store and is reopened, it reads as one
// history, in chunks within their sizes, none of which is rewritten after it is closed.
func TestArchiveProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stored, now := store{}, noon
		var whole History
		a, err := openArchive(stored, now, small)
		if err != nil {
			t.Fatal(err)
		}
		count := map[string]int{}
		add := func() {
			policy := fmt.Sprintf("job-%d/worker", rapid.IntRange(0, 5).Draw(t, "policy"))
			e := entryOf(policy, now, count[policy],
				count[policy]+rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "change"))
			e.Metrics[0].Value, e.Metrics[0].Why = new(rapid.Float64().Draw(t, "value")),
				rapid.StringN(0, 40, 600).Draw(t, "why")
			e.Outcome = rapid.SampledFrom([]Outcome{e.Outcome, e.Outcome, OutcomeDryRun}).Draw(t, "outcome")
			if e.Scaled() {
				count[policy] = e.To
			}
			a.Add(e)
			whole.Add(e)
			now = now.Add(time.Duration(rapid.SampledFrom([]int{0, 1, 5, 1000}).Draw(t, "seconds")) * time.Second)
		}
		take := func(fails func(string) bool) {
			before := maps.Clone(stored)
			if err := stored.take(a, now, fails); err != nil {
				t.Fatal(err)
			}
			rewritten := 0
			for name, data := range before {
				if !bytes.Equal(stored[name], data) {
					rewritten++
				}
			}
			if rewritten > 1 {
				t.Fatalf("%d chunks were written again", rewritten)
			}
		}
		for range rapid.IntRange(1, 20).Draw(t, "rounds") {
			for range rapid.IntRange(0, 60).Draw(t, "entries") {
				add()
			}
			switch rapid.IntRange(0, 3).Draw(t, "then") {
			case 0:
				left := rapid.IntRange(0, 3).Draw(t, "writes")
				take(func(string) bool { left--; return left < 0 })
			case 1:
				take(never)
				if a, err = openArchive(stored, now, small); err != nil {
					t.Fatal(err)
				}
			default:
				take(never)
			}
		}
		take(never)
		if put, remove, err := a.Pack(now); len(put)+len(remove) > 0 || err != nil {
			t.Fatalf("%d chunks are to be stored once more, %v to be removed (%v)", len(put), remove, err)
		}
		got, err := ReadHistory(stored, now, Selection{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(whole.Entries(now, Selection{}), got); diff != "" {
			t.Fatalf("(-added +read):\n%s", diff)
		}
		group := Selection{Group: "job-1", OnlyChanges: true}
		some, err := ReadHistory(stored, now, group)
		if diff := cmp.Diff(whole.Entries(now, group), some); diff != "" || err != nil {
			t.Fatalf("of one group (-added +read, %v):\n%s", err, diff)
		}
		for name, data := range stored {
			if len(data) > small.most {
				t.Fatalf("%s has %d bytes", name, len(data))
			}
		}
	})
}

// TestArchiveSplits checks that what is too much for one chunk goes into several at once, and that an entry too large
// for any is left out and reported.
func TestArchiveSplits(t *testing.T) {
	stored := store{}
	a := opened(t, stored, noon, small)
	var whole History
	for i := range 1000 {
		e := entryOf(fmt.Sprintf("job-%d/worker", i), noon, i, i+1)
		a.Add(e)
		whole.Add(e)
	}
	huge := entryOf("huge/worker", noon, 1, 2)
	for i := range 2000 {
		huge.Metrics = append(huge.Metrics, EntryMetric{Name: fmt.Sprint(i * i * i), Why: fmt.Sprint(i * i * i * 7)})
	}
	a.Add(huge)
	err := stored.take(a, noon, never)
	if err == nil || !strings.Contains(err.Error(), "a decision of policy huge/worker takes ") {
		t.Errorf("a decision that is too large is reported as %v", err)
	}
	if len(stored) < 3 {
		t.Errorf("all is in %d chunks", len(stored))
	}
	if err := stored.take(a, noon, never); err != nil {
		t.Errorf("it is reported again: %v", err)
	}
	got, err := ReadHistory(stored, noon, Selection{})
	if diff := cmp.Diff(whole.Entries(noon, Selection{}), got); diff != "" || err != nil {
		t.Errorf("(-added +read, %v):\n%s", err, diff)
	}
}

// fill adds entries that change the count, one per minute, until this many chunks are stored, and returns the time of
// the last.
func fill(t testing.TB, s store, a *Archive, start time.Time, chunks int) (now time.Time) {
	t.Helper()
	for now = start; len(s) < chunks; now = now.Add(time.Minute) {
		a.Add(entryOf("job/worker", now, now.Minute(), now.Minute()+1))
		if err := s.take(a, now, never); err != nil {
			t.Fatal(err)
		}
	}
	return now
}

func names(s store) string { return strings.Join(slices.Sorted(maps.Keys(s)), " ") }

// TestArchiveForgets checks that the oldest chunks are removed: those that are too old, and those beyond the total
// size.
func TestArchiveForgets(t *testing.T) {
	stored := store{}
	a := opened(t, stored, noon, small)
	now := fill(t, stored, a, noon, 3)
	if err := stored.take(a, noon.Add(KeepHistory), never); err != nil || len(stored) != 3 {
		t.Errorf("within the time, %s are left (%v)", names(stored), err)
	}
	later := now.Add(KeepHistory + time.Minute)
	a.Add(entryOf("job/worker", later, 1, 2))
	fails := true
	if err := stored.take(a, later, func(name string) bool { return fails && name == "2" }); err != nil ||
		names(stored) != "2 3" {
		t.Errorf("where a removal fails, %s are left (%v)", names(stored), err)
	}
	if err := stored.take(a, later, never); err != nil || names(stored) != "3" {
		t.Errorf("after the time, %s are left (%v)", names(stored), err)
	}

	tight := small
	tight.all = 4 * small.closed
	stored = store{}
	a = opened(t, stored, noon, tight)
	for range 1500 {
		now = now.Add(time.Minute)
		a.Add(entryOf("job/worker", now, now.Minute(), now.Minute()+1))
		if err := stored.take(a, now, never); err != nil {
			t.Fatal(err)
		}
		size := 0
		for _, data := range stored {
			size += len(data)
		}
		if size > tight.all {
			t.Fatalf("%d bytes are stored in %s", size, names(stored))
		}
	}
	if len(stored) < 3 || stored["1"] != nil {
		t.Errorf("%s are left", names(stored))
	}
	kept, err := ReadHistory(stored, now, Selection{Limit: 1})
	if err != nil || len(kept) != 1 || !kept[0].At.Equal(now) {
		t.Errorf("the newest that is read is %+v (%v)", kept, err)
	}
}

// TestCorruptChunks checks that unreadable chunks are named and left alone, that the history continues in another
// chunk, and that the rest of it is read.
func TestCorruptChunks(t *testing.T) {
	line := func(e Entry) []byte {
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		return append(text, '\n')
	}
	chunk := func(lines ...[]byte) []byte { return packer().EncodeAll(bytes.Join(lines, nil), nil) }
	head, whole := []byte("{\"version\":1}\n"), line(entryOf("job/worker", noon, 1, 2))
	nobody, backwards, undecided := entryOf("job", noon, 1, 2), entryOf("job/worker", noon, 1, 2),
		entryOf("job/worker", noon, 1, 2)
	backwards.Until = noon.Add(-1)
	undecided.Decisions = 0
	good := chunk(head, whole)
	for name, test := range map[string]struct {
		data []byte
		says string
	}{
		"nothing":      {nil, "it is empty"},
		"no chunk":     {[]byte("hello"), "magic"},
		"a part":       {good[:len(good)-5], "EOF"},
		"another byte": {append(slices.Clone(good[:len(good)-1]), good[len(good)-1]^1), "CRC"},
		"too much":     {packer().EncodeAll(make([]byte, maxUnpacked+1), nil), "exceed"},
		"no head":      {chunk(whole), "it has version 0, and this version of Trainyard supports version 1"},
		"a newer one": {
			chunk([]byte("{\"version\":2}\n"), whole),
			"it has version 2, and this version of Trainyard supports version 1",
		},
		"text":               {chunk([]byte("hello\n")), "it has no valid version"},
		"half a line":        {chunk(head, whole[:len(whole)/2]), "line 2"},
		"no policy":          {chunk(head, whole, line(nobody)), "line 3 is not a decision"},
		"no decision":        {chunk(head, line(undecided)), "line 2 is not a decision"},
		"an end before all":  {chunk(head, line(backwards)), "line 2 is not a decision"},
		"a list of them all": {chunk(head, []byte("[1]\n")), "line 2"},
	} {
		t.Run(name, func(t *testing.T) {
			stored := store{"7": good, "9": test.data}
			check := func(err error) {
				t.Helper()
				var fault *ChunkError
				if !errors.As(err, &fault) || fault.Name != "9" || !strings.Contains(err.Error(), test.says) ||
					strings.Contains(err.Error(), `"7"`) {
					t.Errorf("the error is %v, which does not say %q", err, test.says)
				}
			}
			a, err := openArchive(stored, noon.Add(30*time.Minute), small)
			check(err)
			a.Add(entryOf("job/worker", noon.Add(time.Hour), 2, 3))
			if err := stored.take(a, noon.Add(time.Hour), never); err != nil {
				t.Fatal(err)
			}
			if got := names(stored); got != "10 7 9" || !bytes.Equal(stored["9"], test.data) {
				t.Errorf("%s are stored", got)
			}
			kept, err := ReadHistory(stored, noon.Add(time.Hour), Selection{})
			check(err)
			if len(kept) != 2 || kept[1].To != 3 {
				t.Errorf("what is read is %+v", kept)
			}
			// It is removed once it is certainly old enough.
			for _, step := range []struct {
				at   time.Duration
				left string
			}{{KeepHistory + time.Minute, "10 9"}, {KeepHistory + 31*time.Minute, "10"}} {
				if err := stored.take(a, noon.Add(step.at), never); err != nil || names(stored) != step.left {
					t.Errorf("after %s, %s are left (%v)", step.at, names(stored), err)
				}
			}
		})
	}
}

// TestForeignChunks checks that items with other names are not part of the history.
func TestForeignChunks(t *testing.T) {
	for _, name := range []string{"", "x", "0", "01", "-1", "+1", "9999999999999999", "scaling-history-1"} {
		stored := store{name: []byte("x")}
		a, err := openArchive(stored, noon, small)
		if err == nil || !strings.Contains(err.Error(),
			fmt.Sprintf("reading part %q of the scaling history: its name is not a number", name)) {
			t.Errorf("%s: the error is %v", name, err)
		}
		a.Add(entryOf("job/worker", noon, 1, 2))
		if err := stored.take(a, noon.Add(2*KeepHistory), never); err != nil || len(stored) != 2 ||
			stored["1"] == nil || string(stored[name]) != "x" {
			t.Errorf("%s are stored (%v)", names(stored), err)
		}
	}
}

// FuzzUnpack checks that stored data is either read or rejected, and that what is read stays the same after it is
// stored again.
func FuzzUnpack(f *testing.F) {
	for _, lines := range []string{
		"", "{\"version\":1}\n", "{\"version\":1}\n{\"policy\":\"a/b\",\"decisions\":1}\n",
		"{\"version\":1}\n{\"policy\":\"a/b\",\"at\":\"2026-11-22T12:00:00Z\",\"until\":\"2026-11-22T12:00:05.5+01:00\",\"decisions\":1,\"metrics\":[{\"name\":\"\\ud800\",\"value\":1e308}]}\n",
	} {
		f.Add([]byte(lines), true)
		f.Add([]byte(lines), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, compressed bool) {
		if compressed {
			data = packer().EncodeAll(data, nil)
		}
		entries, err := unpack(data, Selection{})
		if err != nil {
			if len(entries) > 0 {
				t.Errorf("%d entries, and %v", len(entries), err)
			}
			return
		}
		var h, again History
		h.addAll(entries)
		packed, err := pack(h.entries)
		if err != nil {
			t.Fatal(err)
		}
		if entries, err = unpack(packed, Selection{}); err != nil {
			t.Fatal(err)
		}
		again.addAll(entries)
		if diff := cmp.Diff(h.entries, again.entries); diff != "" {
			t.Errorf("(-read +read again):\n%s", diff)
		}
	})
}
