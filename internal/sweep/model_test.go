package sweep

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// TestModel simulates a cluster with a controller that dies now and then, sweeps that change while they run, GPUs that
// others use, and programs that end in all possible ways. Each case is identified by its seed.
func TestModel(t *testing.T) {
	t.Parallel()
	cases := uint64(2_500)
	switch {
	case testing.Short():
		cases = 500
	case acctest.AllKills():
		cases = 10_000
	}
	const shares = 4
	var tallies [shares]tally
	t.Run("cases", func(t *testing.T) {
		for share := range uint64(shares) {
			t.Run(fmt.Sprint(share), func(t *testing.T) {
				t.Parallel()
				for seed := share; seed < cases && play(t, seed, &tallies[share]); seed += shares {
				}
			})
		}
	})
	if t.Failed() {
		return
	}
	var all tally
	for _, some := range tallies {
		all.add(some)
	}
	t.Logf("%d cases: %+v", cases, all)
	// A model in which nothing happens shows nothing.
	for what, n := range map[string]int{
		"starts": all.starts, "ends out of memory": all.outOfMemory, "failures": all.failures, "lost": all.lost,
		"deaths": all.deaths, "applies": all.applies, "wishes": all.wishes,
		"reruns": all.reruns, "runs out of memory for good": all.hopeless, "cancelled": all.cancelled,
		"waits for others": all.kept, "waits by level": all.levelled,
	} {
		if n < int(cases)/50 {
			t.Errorf("of %d cases, the number of %s is %d", cases, what, n)
		}
	}
}

// tally counts what has happened.
type tally struct {
	steps, looks, starts, outOfMemory, failures, lost, deaths    int
	applies, wishes, reruns, hopeless, cancelled, kept, levelled int
}

func (t *tally) add(o tally) {
	t.steps, t.looks, t.starts, t.outOfMemory, t.failures, t.lost = t.steps+o.steps, t.looks+o.looks, t.starts+o.starts,
		t.outOfMemory+o.outOfMemory, t.failures+o.failures, t.lost+o.lost
	t.deaths, t.applies, t.wishes, t.reruns, t.hopeless = t.deaths+o.deaths, t.applies+o.applies, t.wishes+o.wishes,
		t.reruns+o.reruns, t.hopeless+o.hopeless
	t.cancelled, t.kept, t.levelled = t.cancelled+o.cancelled, t.kept+o.kept, t.levelled+o.levelled
}

// lab is a cluster, and the controller of its sweeps.
type lab struct {
	*tally
	t    *testing.T
	seed uint64
	rnd  *rand.Rand
	// age is the true time, and offset the deviation of the controller's clock.
	age, offset time.Duration
	cluster     Cluster
	// foreign is what processes that are not members use, by device or host.
	foreign map[string]int64
	sweeps  []*labSweep
	members map[string]*labMember
	// calm begins after a while: nobody changes anything, and nothing breaks.
	calm bool
	// event makes the controller look. Otherwise it looks at next, and often while measured.
	event, measured bool
	next            time.Time
	// wished is true once somebody has cancelled a run.
	wished, failed bool
}

type labSweep struct {
	spec    domain.Sweep
	doc     domain.SweepDocument
	disk    disk
	record  *Record
	batch   int
	leaving map[string]domain.Assignment
	// greed is what its runs take of a GPU beyond what they ask for, in percent of that.
	greed int64
	ids   int
	// level is how many of its runs a place takes, if it has progress.
	level int
}

// disk keeps the parts of a record as they are written, by name.
type disk map[string]written

type written struct {
	revision int
	data     []byte
}

func (d disk) put(t *testing.T, r *Record, record domain.SweepRecord) {
	t.Helper()
	data, err := json.Marshal(record)
	if err != nil || d[record.Part].revision != record.Revision {
		t.Fatalf("part %s is written on top of revision %d, and %d is stored: %v", record.Part, record.Revision,
			d[record.Part].revision, err)
	}
	record.Revision++
	d[record.Part] = written{record.Revision, data}
	r.Stored(record)
}

func (d disk) read(t *testing.T) map[string]domain.SweepRecord {
	t.Helper()
	records := map[string]domain.SweepRecord{}
	for part, w := range d {
		var record domain.SweepRecord
		if err := json.Unmarshal(w.data, &record); err != nil {
			t.Fatal(err)
		}
		record.Revision = w.revision
		records[part] = record
	}
	return records
}

// labMember is a member that the engine knows.
type labMember struct {
	sweep      *labSweep
	key        string
	batch      int
	at         domain.Assignment
	env, image string
	// takes is when it allocates its memory, ends when it ends, and goes when it is removed; 0 means that nobody has
	// asked for that.
	takes, ends, goes time.Duration
	gpuMiB, mib       int64
	took              bool
	code              int
	vanishes          bool
	observed          domain.Observed
	log               []string
}

func (l *lab) fail(format string, args ...any) {
	l.t.Helper()
	if !l.failed {
		l.t.Errorf("case %d, after %s: %s", l.seed, l.age, fmt.Sprintf(format, args...))
	}
	l.failed = true
}

func (l *lab) now() time.Time { return noon.Add(l.age + l.offset) }

// chance is true in this percentage of cases.
func (l *lab) chance(percent int) bool { return l.rnd.IntN(100) < percent }

func pick[T any](l *lab, from ...T) T { return from[l.rnd.IntN(len(from))] }

// play runs a cluster until all runs have ended, and reports whether nothing went wrong.
func play(t *testing.T, seed uint64, all *tally) bool {
	l := &lab{
		tally: all, t: t, seed: seed, rnd: rand.New(rand.NewPCG(seed, 7)), foreign: map[string]int64{},
		members: map[string]*labMember{}, event: true,
	}
	l.build()
	unrest := l.rnd.IntN(25)
	for step := 0; !l.failed; step++ {
		l.steps++
		if step == unrest {
			l.settleDown()
		}
		if l.calm && len(l.members) == 0 && l.isOver() {
			l.checkEnds()
			return !l.failed
		}
		if step > unrest+l.patience() {
			l.fail("not all runs have ended: %s", l)
			return false
		}
		if !l.calm {
			l.disturb()
		}
		l.pass()
		if l.event || l.measured || !l.next.IsZero() && !l.next.After(l.now()) {
			l.look()
		}
	}
	return false
}

// settleDown ends all disturbances: what others use is freed, and all hosts are there.
func (l *lab) settleDown() {
	l.calm, l.event = true, true
	l.cluster.Closed, l.cluster.Groups, l.foreign = nil, nil, map[string]int64{}
	for _, s := range l.sweeps {
		for key, run := range s.record.Runs() {
			if run.State == domain.RunPaused {
				l.wish(s, key, domain.WishResume)
			}
		}
	}
}

// patience returns how many steps all runs may take once it is calm.
func (l *lab) patience() int {
	steps := 200
	for _, s := range l.sweeps {
		attempts := cmp.Or(s.spec.Attempts(), 12) + s.spec.OutOfMemoryAttempts() + 2
		steps += 30 * attempts * len(s.spec.Runs)
	}
	return steps
}

func (l *lab) isOver() bool {
	for _, s := range l.sweeps {
		if !Summarise(s.doc, s.spec, s.record.Runs()).Ended() {
			return false
		}
	}
	return true
}

// String describes the state of the sweeps.
func (l *lab) String() string {
	var all []string
	for _, s := range l.sweeps {
		all = append(all, fmt.Sprintf("%s: %s", s.spec.Name, Summarise(s.doc, s.spec, s.record.Runs())))
	}
	return strings.Join(all, "; ")
}
