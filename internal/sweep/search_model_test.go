package sweep

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// bed is a cluster on which the runs of a sweep slow each other down, and report their progress.
type bed struct {
	sweep   domain.Sweep
	cluster Cluster
	// seconds is how long a run takes with n runs on its place in total.
	seconds func(run, n int) float64
	// every is how many seconds of a run alone one line of its log stands for; 0 means no lines. loads is how long a
	// run takes to its first line.
	every, loads float64
	// alike is true if all runs have the same number of steps, however long they take.
	alike bool
	// noise is the maximum relative change of a run's speed, drawn again every half minute.
	noise float64
	seed  uint64
	// restart is after how many time steps the controller dies, each time.
	restart int
}

// trip is a run in progress.
type trip struct {
	number, batch int
	at            domain.Assignment
	// done is the completed fraction of it.
	done    float64
	started time.Time
	// factor is its speed factor in the half minute slot.
	slot   int64
	factor float64
	// lines are its log: when it reported which step.
	lines []mark
}

// raced is the result of all runs of a bed.
type raced struct {
	course

	found domain.SweepParallelism
	// reads is how many logs were read. settledAt is when the search ended; 0 if it did not.
	reads     int
	settledAt time.Duration
	// reason is the last reason why runs waited, and crowded the maximum number of runs on a place.
	reason  string
	crowded int
}

// race runs all runs of a bed to their ends.
func (b bed) race(t *testing.T) raced {
	t.Helper()
	const step = 1000 * time.Millisecond
	q := queueOf(b.sweep)
	var was raced
	var search *Search
	open := func() {
		if b.sweep.Progress != nil {
			text, err := json.Marshal(q.Parallelism)
			var stored domain.SweepParallelism
			if err != nil || json.Unmarshal(text, &stored) != nil {
				t.Fatal(err)
			}
			search = NewSearch(q.Document, stored)
		}
	}
	open()
	rnd := rand.New(rand.NewPCG(b.seed, 11))
	on, total, now, read, stirred := map[string]*trip{}, time.Duration(0), noon, noon, true
	for n := 0; was.succeeded < len(q.Keys); n++ {
		if n > 2_000_000 {
			t.Fatalf("it does not end: %+v", was)
		}
		if b.restart > 0 && n%b.restart == b.restart-1 {
			open()
		}
		var got Admission
		if stirred {
			got = Admit(b.cluster, []Queue{q}, now)
			was.reason = cmp.Or(got.Waits[b.sweep.Name], was.reason)
		}
		stirred = len(got.Starts) > 0
		for _, start := range got.Starts {
			q.Runs[start.Key] = Start(q.Document, b.sweep.Run(start.Key), q.Runs[start.Key], start.At, n+1, now)
			number, err := strconv.Atoi(strings.TrimPrefix(start.Key, "r"))
			if err != nil {
				t.Fatal(err)
			}
			on[start.Key] = &trip{number: number, batch: n + 1, at: start.At, started: now}
		}
		was.most = max(was.most, len(on))
		if search != nil && search.Goes() {
			due := search.Watch(q.Runs, now)
			if !due.IsZero() && !due.After(now) && !now.Before(read.Add(search.Interval())) {
				read = now
				for a, since := range search.Read(now) {
					was.reads++
					if steps, lines := b.written(on[a.Key], since); lines > 0 {
						search.Note(a, since, now, steps, lines)
					}
				}
				if search.Decide(now) {
					q.Parallelism = search.Found()
					if q.Parallelism.Settled {
						was.settledAt = now.Sub(noon)
					}
					stirred = true
					continue // and looks again
				}
			}
		}
		// Time passes.
		together := map[string]int{}
		for _, trip := range on {
			for _, place := range b.placesOf(trip.at) {
				together[place]++
				was.crowded = max(was.crowded, together[place])
			}
		}
		now = now.Add(step)
		for _, key := range q.Keys {
			trip := on[key]
			if trip == nil {
				continue
			}
			n := 0
			for _, place := range b.placesOf(trip.at) {
				n = max(n, together[place])
			}
			if slot := now.Unix() / 30; slot != trip.slot {
				trip.slot, trip.factor = slot, 1+b.noise*(2*rnd.Float64()-1)
			}
			trip.done += trip.factor * step.Seconds() / b.seconds(trip.number, n)
			if b.every > 0 && now.Sub(trip.started).Seconds() >= b.loads {
				if steps := math.Floor(trip.done * b.alone(trip.number) / b.every); len(trip.lines) == 0 ||
					steps > trip.lines[len(trip.lines)-1].steps {
					trip.lines = append(trip.lines, mark{now, steps, 0})
				}
			}
			if trip.done < 1 {
				continue
			}
			delete(on, key)
			stirred = true
			q.Runs[key] = Ended(b.sweep, q.Runs[key],
				domain.Observed{State: domain.StateCompleted, ExitCode: new(0), FinishedAt: &now}, nil, 0, now)
			was.succeeded++
			was.makespan = now.Sub(noon)
			total += was.makespan
		}
	}
	was.mean = total / time.Duration(was.succeeded)
	was.found = q.Parallelism
	return was
}

// alone returns how long the steps of a run would take if it was alone.
func (b bed) alone(run int) float64 {
	if b.alike {
		run = 1
	}
	return b.seconds(run, 1)
}

func (b bed) placesOf(at domain.Assignment) []string {
	if b.sweep.GPUs != nil {
		return at.GPUs.UUIDs()
	}
	return []string{at.Host}
}

// written returns what a run has logged since a moment: how many steps it has made since the first line, and how many
// lines there are.
func (b bed) written(trip *trip, since time.Time) (steps float64, lines int) {
	first, _ := slices.BinarySearchFunc(trip.lines, since,
		func(m mark, since time.Time) int { return m.at.Compare(since) })
	if recent := trip.lines[first:]; len(recent) > 0 {
		return recent[len(recent)-1].steps - recent[0].steps, len(recent)
	}
	return 0, 0
}

// rlBed returns 50 experiments on the GPU of reference system rl-lab, which take as long as its table says, and log
// each of their episodes.
func rlBed() bed {
	s := onGPUs(sweepOf("lr", 50), 1199)
	s.Progress = &domain.SweepProgress{Pattern: "episode (?P<step>[0-9]+)"}
	return bed{
		sweep:   s,
		cluster: Cluster{Hosts: hostsOf(8, "vm"), Pools: slots(1199, map[string][]domain.Device{"vm": a40("GPU-a")})},
		seconds: func(_, n int) float64 { return rlLab[n-1] }, every: 0.5, loads: 10,
	}
}

// seeds returns how many of the seeds to try: fewer in a short test.
func seeds(n uint64) uint64 {
	if testing.Short() {
		return max(n/5, 1)
	}
	return n
}

// TestSearchRLLab checks that the sweep finds out by itself that 8 experiments side by side finish most per hour, also
// with progress that varies by 3 %, and compares that with the best number, and with as many as there is memory for.
func TestSearchRLLab(t *testing.T) {
	t.Parallel()
	pool := slots(1199, map[string][]domain.Device{"vm": a40("GPU-a")})
	asked := onGPUs(sweepOf("lr", 50), 1199)
	best, all := lab50(t, atMost(8, asked), pool), lab50(t, asked, pool)
	t.Logf("max_parallel = 8: makespan %.0f s, mean time to a result %.0f s; 37: %.0f s, %.0f s",
		best.makespan.Seconds(), best.mean.Seconds(), all.makespan.Seconds(), all.mean.Seconds())
	for seed := range 1 + seeds(20) {
		b := rlBed()
		name := "exact"
		if b.seed = seed; seed > 0 {
			name, b.noise = fmt.Sprintf("seed %d, ± 3 %%", seed), 0.03
		}
		got := b.race(t)
		t.Logf("%s: %d at a time, found after %.0f s: makespan %.0f s, mean time to a result %.0f s, %d logs read",
			name, got.found.Level, got.settledAt.Seconds(), got.makespan.Seconds(), got.mean.Seconds(), got.reads)
		if !got.found.Settled || got.found.Level < 7 || got.found.Level > 9 || seed == 0 && got.found.Level != 8 {
			t.Errorf("%s: found %+v", name, got.found)
		}
		if got.succeeded != 50 || got.makespan.Seconds() > 1.02*best.makespan.Seconds() ||
			got.mean.Seconds() > 0.75*all.mean.Seconds() {
			t.Errorf("%s: %+v", name, got.course)
		}
		says(t, "what the last ones waited for", got.reason,
			fmt.Sprintf("%d at a time on a GPU is best: %[1]d make ", got.found.Level), "steps a second, and")
	}
}

// TestSearchOfOthers checks that the number is found for all kinds of runs and places.
func TestSearchOfOthers(t *testing.T) {
	t.Parallel()
	unlike := []float64{0.5, 1, 2, 1, 0.7, 1.3, 1}
	faster := func(b *bed, times float64, runs int) {
		slow := b.seconds
		b.seconds = func(run, n int) float64 { return slow(run, n) / times }
		b.sweep.Runs = sweepOf("lr", runs).Runs
	}
	cards := func(b *bed, n int) {
		var uuids []string
		for i := range n {
			uuids = append(uuids, fmt.Sprintf("GPU-%d", i))
		}
		b.cluster.Pools = slots(1199, map[string][]domain.Device{"vm": a40(uuids...)})
		b.sweep.Runs = sweepOf("lr", 50*n).Runs
	}
	onHosts := func(b *bed, cpus float64, hosts ...string) {
		b.cluster = Cluster{Hosts: hostsOf(cpus, hosts...)}
		b.sweep.GPUs = nil
	}
	for name, test := range map[string]struct {
		change      func(b *bed)
		least, most int
	}{
		"of unlike lengths": {
			func(b *bed) { b.seconds = func(run, n int) float64 { return rlLab[n-1] * unlike[run%7] } }, 7, 9,
		},
		"of unlike speeds": {func(b *bed) {
			b.seconds, b.alike = func(run, n int) float64 { return rlLab[n-1] * unlike[run%7] }, true
		}, 7, 9},
		"short":                   {func(b *bed) { faster(b, 10, 300) }, 7, 9},
		"a line each 5 s":         {func(b *bed) { b.every = 5 }, 7, 9},
		"a line each minute":      {func(b *bed) { b.every = 60 }, 7, 9},
		"slow to begin":           {func(b *bed) { b.loads = 45 }, 7, 9},
		"the controller restarts": {func(b *bed) { b.restart = 900 }, 7, 9},
		"on two cards":            {func(b *bed) { cards(b, 2) }, 7, 9},
		"on eight cards":          {func(b *bed) { cards(b, 8) }, 7, 9},
		"on a host":               {func(b *bed) { onHosts(b, 8, "h1") }, 7, 9},
		"on three hosts": {
			func(b *bed) { onHosts(b, 8, "h1", "h2", "h3"); b.sweep.Runs = sweepOf("lr", 150).Runs }, 7, 9,
		},
		"on a host with 40 cores": {func(b *bed) {
			onHosts(b, 64, "h1")
			b.seconds = func(_, n int) float64 { return 600 * max(1, float64(n)/40) }
			b.sweep.Runs = sweepOf("lr", 500).Runs
		}, 36, 45},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range seeds(5) {
				b := rlBed()
				b.noise, b.seed = 0.03, seed
				test.change(&b)
				got := b.race(t)
				t.Logf("%d at a time on a place, found after %s: %+v", got.found.Level, got.settledAt, got.course)
				if got.found.Level < test.least || got.found.Level > test.most || got.succeeded != len(b.sweep.Runs) {
					t.Errorf("seed %d: %+v", seed, got.found)
				}
			}
		})
	}
}

// TestSearchOfTheSilent checks that without visible progress, after a while as many run as there is room for.
func TestSearchOfTheSilent(t *testing.T) {
	t.Parallel()
	long := rlBed()
	long.every = 0
	short := rlBed()
	short.every, short.seconds = 0, func(_, n int) float64 { return rlLab[n-1] / 20 }
	for name, b := range map[string]bed{"long": long, "short": short} {
		got := b.race(t)
		if got.succeeded != 50 || got.crowded != 37 || got.found.Level != 1 || got.found.Settled {
			t.Errorf("%s: %+v", name, got)
		}
		says(t, name, ParallelismReason(documentOf(b.sweep), got.found),
			"as many run as there is room for: no line that a run logged within ", "matches progress.pattern")
	}
}
