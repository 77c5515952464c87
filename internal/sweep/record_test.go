package sweep

import (
	"encoding/json"
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// shelf is a store of records, kept as JSON.
type shelf map[string]domain.SweepRecord

// put stores a part as an engine does: as JSON, with the next revision alongside.
func (s shelf) put(t rapid.TB, r *Record, record domain.SweepRecord) {
	t.Helper()
	if stored := s[record.Key()].Revision; stored != record.Revision {
		t.Fatalf("part %s is written on top of revision %d, and %d is stored", record.Part, record.Revision, stored)
	}
	data, err := json.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	var stored domain.SweepRecord
	if err := json.Unmarshal(data, &stored); err != nil {
		t.Fatal(err)
	}
	stored.Revision = record.Revision + 1
	s[record.Key()] = stored
	r.Stored(stored)
}

// store stores everything that changed, and returns the names of those parts.
func (s shelf) store(t rapid.TB, r *Record) []string {
	t.Helper()
	var parts []string
	for _, record := range r.Changed() {
		s.put(t, r, record)
		parts = append(parts, record.Part)
	}
	return parts
}

func TestRecordInParts(t *testing.T) {
	doc, stored := documentOf(sweepOf("lr", 0)), shelf{}
	r := OpenRecord(doc, stored)
	if parts := stored.store(t, r); len(parts) > 0 {
		t.Errorf("of nothing there are parts: %v", parts)
	}
	for i := range 2*partRuns + 1 {
		r.Set(fmt.Sprintf("r%d", i), domain.Run{State: domain.RunRunning, Attempts: i})
	}
	if diff := cmp.Diff([]string{"0", "1", "2"}, stored.store(t, r)); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
	if again := r.Changed(); len(again) > 0 {
		t.Errorf("once stored there are changes: %v", again)
	}
	if len(stored["lr/0"].Runs) != partRuns || len(stored["lr/2"].Runs) != 1 || stored["lr/1"].ID != doc.ID {
		t.Errorf("there are %d in the first part, and %d in the last one", len(stored["lr/0"].Runs),
			len(stored["lr/2"].Runs))
	}

	// A changed run stays in its part, whoever has opened the record.
	r = OpenRecord(doc, stored)
	if len(r.Runs()) != 2*partRuns+1 || r.Runs()["r7"].Attempts != 7 {
		t.Fatalf("%d runs are remembered", len(r.Runs()))
	}
	r.Set(fmt.Sprintf("r%d", partRuns+3), domain.Run{State: domain.RunSucceeded})
	if diff := cmp.Diff([]string{"1"}, stored.store(t, r)); diff != "" {
		t.Errorf("of a change in part 1 it writes (-want +got):\n%s", diff)
	}
	// New runs go where there is room.
	r.Set("new", domain.Run{State: domain.RunRunning})
	if diff := cmp.Diff([]string{"2"}, stored.store(t, r)); diff != "" {
		t.Errorf("of a new run it writes (-want +got):\n%s", diff)
	}
	// A forgotten run is gone from its part, and leaves room there for others once the record is opened again.
	r.Forget("r0")
	r.Forget("r0")
	r.Forget("never there")
	if diff := cmp.Diff([]string{"0"}, stored.store(t, r)); diff != "" || len(r.Runs()) != 2*partRuns+1 {
		t.Errorf("%d are remembered; of one that is forgotten it writes (-want +got):\n%s", len(r.Runs()), diff)
	}
	if _, there := OpenRecord(doc, stored).Runs()["r0"]; there {
		t.Error("it is remembered")
	}
}

// TestRecordOfOneThatComesBack checks that a controller that dies between two writes does not leave a run in two parts,
// one of which is outdated.
func TestRecordOfOneThatComesBack(t *testing.T) {
	doc, stored := documentOf(sweepOf("lr", 0)), shelf{}
	r := OpenRecord(doc, stored)
	for i := range partRuns {
		r.Set(fmt.Sprintf("r%d", i), domain.Run{State: domain.RunSucceeded})
	}
	r.Set("last", domain.Run{State: domain.RunRunning})
	stored.store(t, r)
	r.Forget("r0")
	r.Set("r0", domain.Run{State: domain.RunRunning})
	changed := r.Changed()
	if len(changed) != 1 || changed[0].Part != "0" || len(changed[0].Runs) != partRuns {
		t.Errorf("%d parts have changed, %s first", len(changed), changed[0].Part)
	}
}

// TestRecordsOfOthers checks that records of an earlier sweep with the same name are ignored and overwritten, and those
// of other sweeps left alone.
func TestRecordsOfOthers(t *testing.T) {
	before := documentOf(sweepOf("lr", 0))
	before.ID = "before"
	stored := shelf{}
	r := OpenRecord(before, stored)
	for i := range partRuns + 1 {
		r.Set(fmt.Sprintf("r%d", i), domain.Run{State: domain.RunSucceeded})
	}
	stored.store(t, r)
	r = OpenRecord(documentOf(sweepOf("other", 0)), stored)
	r.Set("r0", domain.Run{State: domain.RunFailed})
	stored.store(t, r)

	doc := documentOf(sweepOf("lr", 0))
	if runs := Remembered(doc, stored); len(runs) > 0 {
		t.Errorf("there is remembered: %v", runs)
	}
	r = OpenRecord(doc, stored)
	if len(r.Runs()) > 0 || len(r.Changed()) > 0 {
		t.Errorf("there is remembered: %v", r.Runs())
	}
	r.Set("r9", domain.Run{State: domain.RunRunning})
	if diff := cmp.Diff([]string{"0"}, stored.store(t, r)); diff != "" {
		t.Errorf("it writes (-want +got):\n%s", diff)
	}
	want := map[string]domain.Run{"r9": {State: domain.RunRunning}}
	if diff := cmp.Diff(want, Remembered(doc, stored)); diff != "" {
		t.Errorf("there is remembered (-want +got):\n%s", diff)
	}
	if n := len(Remembered(documentOf(sweepOf("other", 0)), stored)); n != 1 {
		t.Errorf("of the other sweep %d runs are remembered", n)
	}
}

// TestRecordKeepsAll checks that all state of a run is kept, and that a part that could not be stored is stored with
// the next write.
func TestRecordKeepsAll(t *testing.T) {
	doc, stored := documentOf(onGPUs(sweepOf("lr", 1), 1199)), shelf{}
	run := Start(doc, domain.RunSpec{Key: "r0", Env: map[string]string{"LR": "0"}}, domain.Run{},
		domain.Assignment{Host: "gpu1", Port: 20000, GPUs: "GPU-a,GPU-b"}, 3, noon)
	run = Ended(onGPUs(sweepOf("lr", 1), 1), run, failedWith(1, ""), []string{"CUDA out of memory"}, 3, noon)
	run.NotBefore, run.Value, run.PeakMemoryMiB, run.PeakGPUMemoryMiB, run.Failures = new(at(1.5)), new(0.1),
		new(int64(1)), new(int64(2)), 4
	run.Results = &domain.RunResults{
		Path: "/results", Mount: &domain.Mount{Type: domain.MountVolume, Source: "lr", Target: "/results"},
	}
	r := OpenRecord(doc, stored)
	r.Set("r0", run)
	if len(r.Changed()) != 1 {
		t.Error("it has not changed")
	}
	r.Set("r1", domain.Run{State: domain.RunQueued}) // the write has failed
	stored.store(t, r)
	if diff := cmp.Diff(map[string]domain.Run{"r0": run, "r1": {State: domain.RunQueued}},
		OpenRecord(doc, stored).Runs()); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
}

// TestRecordProperties checks that, whatever is done and whenever it is reopened, a record has what was stored last.
func TestRecordProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc, stored := documentOf(sweepOf("lr", 0)), shelf{}
		r, want, kept := OpenRecord(doc, stored), map[string]domain.Run{}, map[string]domain.Run{}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			first := rapid.IntRange(0, 3*partRuns).Draw(t, "first")
			last := first + rapid.SampledFrom([]int{1, 2, 100, 2 * partRuns}).Draw(t, "number")
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				attempts := rapid.IntRange(1, 9).Draw(t, "attempts")
				for i := first; i < last; i++ {
					key := fmt.Sprintf("r%d", i)
					want[key] = domain.Run{State: domain.RunRunning, Attempts: attempts}
					r.Set(key, want[key])
				}
			case 1:
				for i := first; i < last; i++ {
					key := fmt.Sprintf("r%d", i)
					delete(want, key)
					r.Forget(key)
				}
			case 2:
				for _, part := range stored.store(t, r) {
					// More than that come from runs that return to a part that has been filled meanwhile.
					if n := len(stored["lr/"+part].Runs); n > 2*partRuns {
						t.Fatalf("part %s has %d runs", part, n)
					}
				}
				kept = maps.Clone(want)
			default: // it dies, and what it had not stored is lost
				r, want = OpenRecord(doc, stored), maps.Clone(kept)
			}
			same := func(a, b domain.Run) bool { return a.State == b.State && a.Attempts == b.Attempts }
			if !maps.EqualFunc(want, r.Runs(), same) {
				t.Fatalf("runs (-want +got):\n%s", cmp.Diff(want, r.Runs()))
			}
			if got := Remembered(doc, stored); !maps.EqualFunc(kept, got, same) {
				t.Fatalf("stored runs (-want +got):\n%s", cmp.Diff(kept, got))
			}
		}
	})
}
