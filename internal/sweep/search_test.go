package sweep

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// searching returns a sweep of nine runs on hosts, and its search with what is stored.
func searching(stored domain.SweepParallelism) (domain.Sweep, *Search) {
	s := sweepOf("lr", 9)
	s.Progress = &domain.SweepProgress{Pattern: "step", Settle: seconds(30)}
	if stored.Level > 0 {
		stored.ID, stored.Of = documentOf(s).ID, searched(documentOf(s))
	}
	return s, NewSearch(documentOf(s), stored)
}

// gets lets runs r0, r1, … on a host make this many steps per second each, for some time, and returns the decision.
func gets(s *Search, took float64, rates ...float64) bool {
	runs := map[string]domain.Run{}
	for i := range rates {
		runs[fmt.Sprintf("r%d", i)] = running("h1", noon)
	}
	s.Watch(runs, noon)
	s.Watch(runs, at(15))
	for a, since := range s.Read(at(15)) {
		for n, late := range []float64{0, took} {
			s.Note(a, since, at(15+late), rates[a.Key[1]-'0']*late, 2+100*n)
		}
	}
	return s.Decide(at(15 + took))
}

func TestSearchDecides(t *testing.T) {
	known := func(level, best, over int, throughput map[int]float64) domain.SweepParallelism {
		rates := map[string]float64{}
		for i := range best {
			rates[fmt.Sprintf("r%d", i)] = throughput[best] / float64(best)
		}
		return domain.SweepParallelism{
			Level: level, Best: best, Over: over, Base: best, Throughput: throughput, Rates: rates,
		}
	}
	again := known(2, 2, 3, map[int]float64{1: 1, 2: 1.6, 3: 1.6})
	again.Base, again.Rates = 3, map[string]float64{"r0": 1.6 / 3, "r1": 1.6 / 3, "r2": 1.6 / 3}
	for name, test := range map[string]struct {
		stored domain.SweepParallelism
		took   float64
		rates  []float64
		// level is the next one; 0 if there is none yet. best and over are what is known then.
		level, best, over int
		settled           bool
	}{
		"the first":           {domain.SweepParallelism{}, 12, []float64{1}, 2, 1, 0, false},
		"the first, too soon": {domain.SweepParallelism{}, 9, []float64{1}, 0, 0, 0, false},
		"more, clearly": {
			known(2, 1, 0, map[int]float64{1: 1}), 12, []float64{0.8, 0.8}, 3, 2, 0, false,
		},
		"as many again, where all get on": {
			known(2, 1, 0, map[int]float64{1: 1}), 12, []float64{0.99, 1.01}, 4, 2, 0, false,
		},
		"not yet clear that it is too little": {
			known(2, 1, 0, map[int]float64{1: 1}), 12, []float64{0.4, 0.4}, 0, 1, 0, false,
		},
		"too little: what was best once more": {
			known(2, 1, 0, map[int]float64{1: 1}), 65, []float64{0.4, 0.4}, 1, 1, 2, false,
		},
		"not clear for long: by what it is": {
			known(2, 1, 0, map[int]float64{1: 1}), 205, []float64{0.53, 0.53}, 3, 2, 0, false,
		},
		"another run than before": {
			known(3, 2, 0, map[int]float64{1: 1, 2: 2}), 12, []float64{0.9, 0.9, 7}, 4, 3, 0, false,
		},
		"too far: between them": {
			known(8, 4, 0, map[int]float64{4: 4, 2: 2}), 65, []float64{0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4}, 6, 4, 8,
			false,
		},
		"far, and some of it: between them": {
			known(8, 4, 0, map[int]float64{4: 4, 2: 2}), 12, []float64{0.7, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7}, 6, 8, 0,
			false,
		},
		"fewer make as much": {
			known(6, 8, 0, map[int]float64{2: 2, 4: 4, 8: 5.6}), 205, []float64{0.93, 0.93, 0.93, 0.93, 0.93, 0.93}, 5,
			6, 8, false,
		},
		"fewer make less": {
			known(6, 8, 0, map[int]float64{2: 2, 4: 4, 8: 5.6}), 65, []float64{0.75, 0.75, 0.75, 0.75, 0.75, 0.75}, 7,
			8, 0, false,
		},
		"once more the best":          {again, 65, []float64{0.8, 0.8}, 2, 2, 3, true},
		"once more, and not the best": {again, 65, []float64{0.6, 0.6}, 4, 3, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, s := searching(test.stored)
			moved := gets(s, test.took, test.rates...)
			f := s.Found()
			if level := f.Level; moved != (test.level > 0) || moved != s.Changed() || moved && level != test.level ||
				f.Best != test.best || f.Over != test.over || f.Settled != test.settled {
				t.Errorf("it is %v that it moved, to %+v", moved, f)
			}
			if f.Settled && (s.Goes() || len(f.Rates) > 0) {
				t.Errorf("it has settled, and keeps %+v", f)
			}
		})
	}
}

// TestSearchWatches checks that runs count while their place has as many as the level, and after they have warmed up.
func TestSearchWatches(t *testing.T) {
	_, s := searching(domain.SweepParallelism{
		Level: 2, Best: 1, Base: 1, Throughput: map[int]float64{1: 1}, Rates: map[string]float64{"a": 1},
	})
	paused := running("h1", noon)
	paused.State = domain.RunPaused
	runs := map[string]domain.Run{
		"a": running("h1", noon), "b": running("h1", noon), "c": running("h2", noon), "d": paused,
		"e": endedRun(domain.RunSucceeded, "h1", noon),
	}
	if next := s.Watch(runs, noon); !next.Equal(at(15)) {
		t.Errorf("the next is due at %s", next)
	}
	if due := s.Read(at(14)); len(due) > 0 {
		t.Errorf("too soon it reads %v", due)
	}
	for a, since := range s.Read(at(15)) {
		if a.Key > "b" || !since.Equal(at(15)) {
			t.Errorf("%v is read since %s", a, since)
		}
		s.Note(a, since, at(16), 1, 2)
		s.Note(a, since, at(25), 10, 11)
	}
	if rates, each, _ := s.rates(); len(rates) != 2 || rates["a"] != 1 || each != 9*time.Second {
		t.Errorf("measured are %v, for %s each", rates, each)
	}
	// One ends: its measurement counts, and the other one is no longer measured.
	delete(runs, "b")
	if next := s.Watch(runs, at(30)); !next.IsZero() || s.ended != 1 {
		t.Errorf("alone on its host, one is to be read at %s; %d have ended", next, s.ended)
	}
	runs["f"] = running("h1", at(31))
	if next := s.Watch(runs, at(31)); !next.Equal(at(46)) {
		t.Errorf("the next is due at %s", next)
	}
	s.Note(Attempt{"a", 1}, at(15), at(47), 99, 99) // for a request from before
	if rates, _, _ := s.rates(); len(rates) != 2 || rates["a"] != 1 {
		t.Errorf("measured are %v", rates)
	}
	// After a clock was set back, or with a log that is too long, the measurement begins again.
	if next := s.Watch(runs, at(-60)); !next.Equal(at(46)) && !next.Equal(at(-45)) {
		t.Errorf("the next is due at %s", next)
	}
	s.Miss(Attempt{"a", 1}, at(50), "too long")
	if since := s.Read(at(50))[Attempt{"a", 1}]; !since.Equal(at(50)) {
		t.Errorf("a log that was too long is read since %s", since)
	}
}

// TestSearchGoesOn checks that a result only counts for the runs that it was found for.
func TestSearchGoesOn(t *testing.T) {
	spec, s := searching(domain.SweepParallelism{})
	gets(s, 12, 1)
	stored, doc := s.Found(), documentOf(spec)
	stored.Revision = 4
	s.Stored(stored)
	if s.Changed() || !s.Of(doc) || Parallelism(doc, stored).Level != 2 {
		t.Errorf("%+v", Parallelism(doc, stored))
	}
	for name, change := range map[string]func(d *domain.SweepDocument){
		"another sweep": func(d *domain.SweepDocument) { d.ID = "other" },
		"a rerun":       func(d *domain.SweepDocument) { d.MinRun++ },
		"another line": func(d *domain.SweepDocument) {
			d.Spec.Progress = &domain.SweepProgress{Pattern: "episode"}
		},
		"on GPUs": func(d *domain.SweepDocument) { d.Spec.GPUs = &domain.GPURequest{Pool: "p"} },
	} {
		other := doc
		change(&other)
		if got := Parallelism(other, stored); got.Level != 1 || got.Best != 0 || got.Revision != 4 ||
			got.ID != other.ID || s.Of(other) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	doc.Spec.MaxParallel = new(3)
	if got := Parallelism(doc, stored); got.Level != 2 {
		t.Errorf("with another bound it is %+v", got)
	}
}

// TestSearchGivesUp checks that the search gives up, with a reason, if nothing can be measured.
func TestSearchGivesUp(t *testing.T) {
	for name, test := range map[string]struct {
		after    float64
		ended    int
		reported bool
		missed   string
		want     string
	}{
		"not yet":                {299, 2, false, "", ""},
		"after ten times settle": {300, 0, false, "", "no line that a run logged within 5m0s matches progress.pattern"},
		"some have ended":        {60, 3, false, "", "no line that a run logged within 1m0s matches progress.pattern"},
		"too few have ended":     {60, 2, false, "", ""},
		"by what is in the way":  {300, 0, false, "its log is too long", "its log is too long"},
		"slow":                   {3000, 0, true, "", ""},
		"too short": {
			300, 3, true, "", "runs end before their progress can be measured; set progress.settle to less than 30s",
		},
	} {
		_, s := searching(domain.SweepParallelism{})
		s.Watch(map[string]domain.Run{"a": running("h1", noon)}, noon)
		s.ended, s.reported, s.trouble = test.ended, test.reported, test.missed
		if moved, got := s.Decide(at(test.after)), s.Found().Unknown; got != test.want || moved != (test.want != "") ||
			s.Goes() != (test.want == "") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestSearchKeepsAFew checks that only a few rates are kept, preferably of active runs.
func TestSearchKeepsAFew(t *testing.T) {
	_, s := searching(domain.SweepParallelism{})
	rates := map[string]float64{"z": 1}
	for i := range 2 * ratesKept {
		rates[fmt.Sprint("a", i)] = 1
	}
	s.attempts[Attempt{"z", 1}] = &watched{}
	if few := s.few(rates); len(few) != ratesKept || few["z"] != 1 {
		t.Errorf("%d are kept", len(few))
	}
}

// TestSearchProperties checks that, whatever runs log, the result can be stored, and the level is valid.
func TestSearchProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		_, s := searching(domain.SweepParallelism{})
		now := noon
		for range rapid.IntRange(1, 60).Draw(t, "looks") {
			runs := map[string]domain.Run{}
			for i := range rapid.IntRange(0, s.Found().Level+1).Draw(t, "runs") {
				run := running("h1", noon)
				run.Batch = rapid.IntRange(1, 2).Draw(t, "batch")
				runs[fmt.Sprintf("r%d", i)] = run
			}
			s.Watch(runs, now)
			now = now.Add(time.Duration(rapid.IntRange(-5, 60).Draw(t, "passes")) * time.Second)
			s.Watch(runs, now)
			for a, since := range s.Read(now) {
				for _, steps := range rapid.SliceOfN(rapid.Float64(), 0, 2).Draw(t, "steps") {
					now = now.Add(20 * time.Second)
					s.Note(a, since, now, steps, rapid.IntRange(1, 3000).Draw(t, "lines"))
				}
			}
			s.Decide(now)
			f := s.Found()
			if _, err := json.Marshal(f); err != nil || f.Level < 1 || f.Best < 0 || f.Over > 0 && f.Over <= f.Best ||
				f.Settled && f.Level != f.Best {
				t.Fatalf("%v: %+v", err, f)
			}
		}
	})
}

// TestAdmitByLevel checks that a sweep has as many runs on a place as its level, does not reserve what others need, and
// reports that.
func TestAdmitByLevel(t *testing.T) {
	progress := func(s domain.Sweep) domain.Sweep {
		s.Progress = &domain.SweepProgress{Pattern: "step"}
		return s
	}
	levelled := func(s domain.Sweep, level int) Queue {
		q := queueOf(s)
		q.Parallelism = Parallelism(q.Document, domain.SweepParallelism{})
		q.Parallelism.Level = level
		return q
	}
	plain := func(name string, n int) domain.Sweep {
		s := sweepOf(name, n)
		s.Resources = domain.ResourceRequirements{}
		return s
	}
	cards := cardsFree(nil)
	hosts := Cluster{Hosts: hostsOf(2, "h1", "h2")}
	packed := progress(plain("a", 9))
	packed.Placement.Strategy = domain.Pack
	two := progress(onGPUs(sweepOf("a", 9), 1199))
	two.GPUs.Count = new(2)
	unknown := levelled(progress(plain("a", 9)), 1)
	unknown.Parallelism.Unknown = "nothing is written"
	bounded := levelled(progress(onGPUs(sweepOf("a", 9), 1199)), 3)
	bounded.Spec.MaxParallel = new(1)
	for name, test := range map[string]struct {
		cluster Cluster
		queues  []Queue
		starts  string
		waits   []string
	}{
		"one on each card": {cards, []Queue{levelled(progress(onGPUs(sweepOf("a", 9), 1199)), 1)},
			"a/r0 on gpu1 GPU-a, a/r1 on gpu1 GPU-b", []string{"1 at a time on a GPU until its progress is measured"}},
		"two on each, one of which is on": {cards, []Queue{levelled(progress(onGPUs(sweepOf("a", 9), 1199)),
			2).with(map[string]domain.Run{"r0": running("gpu1 GPU-b", noon)})},
			"a/r1 on gpu1 GPU-a, a/r2 on gpu1 GPU-a, a/r3 on gpu1 GPU-b", []string{"2 at a time on a GPU"}},
		"more than that are on": {cards,
			[]Queue{levelled(progress(onGPUs(sweepOf("a", 9), 1199)), 1).with(map[string]domain.Run{
				"r0": running("gpu1 GPU-a", noon), "r1": running("gpu1 GPU-a", noon), "r2": running("gpu1 GPU-b", noon),
			})}, "", []string{"1 at a time on a GPU"}},
		"each on two cards": {
			cards, []Queue{levelled(two, 2)}, "a/r0 on gpu1 GPU-a,GPU-b, a/r1 on gpu1 GPU-a,GPU-b",
			[]string{"2 at a time on a GPU"},
		},
		"on hosts, whatever their processors": {hosts, []Queue{levelled(progress(plain("a", 9)), 3)},
			"a/r0 on h1, a/r1 on h2, a/r2 on h1, a/r3 on h2, a/r4 on h1, a/r5 on h2", []string{
				"3 at a time on a host",
			}},
		"packed": {hosts, []Queue{levelled(packed, 1)}, "a/r0 on h1, a/r1 on h2", []string{"1 at a time on a host"}},
		"what is not known bounds nothing": {hosts, []Queue{unknown}, "a/r0 on h1, a/r1 on h2, a/r2 on h1, a/r3 on h2",
			[]string{"limited to the number of CPUs of the hosts, 4"}},
		"max_parallel bounds all": {cards, []Queue{bounded}, "a/r0 on gpu1 GPU-a", []string{"max_parallel is 1"}},
		"it keeps nobody from what it does not wait for": {cards,
			[]Queue{levelled(progress(onGPUs(sweepOf("a", 9), 1199)), 1), queueOf(onGPUs(sweepOf("b", 2), 1199))},

			"a/r0 on gpu1 GPU-a, a/r1 on gpu1 GPU-b, b/r0 on gpu1 GPU-a, b/r1 on gpu1 GPU-b",
			[]string{"1 at a time on a GPU"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Admit(test.cluster, test.queues, noon)
			if starts := strings.Join(startTexts(got.Starts), ", "); starts != test.starts {
				t.Errorf("started are %s\nwant %s", starts, test.starts)
			}
			says(t, "it waits", got.Waits["a"], test.waits...)
		})
	}
}

// TestAdmitByLevelAndRoom checks that a sweep that may use some places by its level, but has no room there, keeps
// others from only those places.
func TestAdmitByLevelAndRoom(t *testing.T) {
	cluster := cardsFree(nil)
	cluster.Pools = exclusive(map[string][]domain.Device{"gpu1": a40("GPU-a", "GPU-b")})
	a := queueOf(onGPUs(sweepOf("a", 9), 0))
	a.Spec.Progress = &domain.SweepProgress{Pattern: "step"}
	a.Document.Spec.Progress = a.Spec.Progress
	a = a.with(map[string]domain.Run{"r0": running("gpu1 GPU-a", noon)})
	taken := queueOf(onGPUs(sweepOf("t", 1), 0)).with(map[string]domain.Run{"r0": running("gpu1 GPU-b", noon)})
	later := queueOf(onGPUs(sweepOf("z", 1), 0))
	got := Admit(cluster, []Queue{a, taken, later}, noon)
	if len(got.Starts) > 0 {
		t.Errorf("started are %v", startTexts(got.Starts))
	}
	says(t, "it waits", got.Waits["a"], "Not enough GPUs", "GPU-b held by", "t-r0-0")
	says(t, "the later one waits", got.Waits["z"], `sweep "a" is ahead of it`)
}

func TestParallelismReason(t *testing.T) {
	s := onGPUs(sweepOf("lr", 2), 1199)
	doc := documentOf(s)
	if got := ParallelismReason(doc, domain.SweepParallelism{}); got != "" {
		t.Errorf("of a sweep without progress it says %q", got)
	}
	doc.Spec.Progress = &domain.SweepProgress{Pattern: "step"}
	throughput := map[int]float64{1: 7.08, 7: 21.9724, 8: 22.5529, 9: 22.3448}
	for want, p := range map[string]domain.SweepParallelism{
		"1 at a time on a GPU until its progress is measured": {Level: 1},
		"trying 2 at a time on a GPU: 1 makes 7.08 steps a second": {
			Level: 2, Best: 1,
		},
		"measuring 8 at a time on a GPU again: 8 make 22.55 steps a second, and 9 make 22.34": {
			Level: 8, Best: 8, Over: 9,
		},
		"8 at a time on a GPU is best: 8 make 22.55 steps a second, and 9 make 22.34": {
			Level: 8, Best: 8, Over: 9, Settled: true,
		},
		"as many run as there is room for: no line that a run logged within 10m0s matches progress.pattern": {
			Level: 1, Unknown: "no line that a run logged within 10m0s matches progress.pattern",
		},
	} {
		p.ID, p.Of, p.Throughput = doc.ID, searched(doc), throughput
		if got := ParallelismReason(doc, p); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
}
