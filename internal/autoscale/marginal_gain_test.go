package autoscale

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// job returns the progress of a number of members.
type job func(members int) float64

// Published training times in seconds by number of Spark workers, from Stolin's paper.
var (
	classificationCPU = times(1, 1740, 2, 828, 5, 535, 10, 295, 15, 263, 20, 281, 25, 257, 30, 247, 35, 258)
	regressionCPU     = times(1, 328, 2, 139, 5, 129, 10, 102, 15, 109, 20, 120, 25, 129, 30, 102, 35, 109)
	classificationGPU = times(1, 597, 2, 342)
)

// parameterServers has the shape that Krasuski found for two parameter servers: faster up to five nodes, then flat,
// then worse.
func parameterServers(members int) float64 {
	return []float64{0, 1, 1.9, 2.7, 3.4, 3.9, 3.92, 3.8, 3.6, 3.5, 3.4}[min(members, 10)]
}

// linear is a job that scales ideally.
func linear(members int) float64 { return float64(members) }

// times returns a job from the seconds that some numbers of members take. Its progress is linear between them.
func times(table ...float64) job {
	return func(members int) float64 {
		n := float64(members)
		for i := 0; i+3 < len(table); i += 2 {
			if from, to := table[i], table[i+2]; n <= to {
				share := (n - from) / (to - from)
				return (1-share)/table[i+1] + share/table[i+3]
			}
		}
		return 1 / table[len(table)-1]
	}
}

// training is a role whose members make progress.
type training struct {
	algorithm domain.MarginalGainAlgorithm
	policy    domain.AutoscalingPolicy
	// progress is that of the members, at a time since the beginning.
	progress func(members int, after time.Duration) float64
	// startup is how long new members take to be ready.
	startup time.Duration
	// others set counts at times since the beginning.
	others map[time.Duration]int
	// restarts stores and reads the memory before each decision.
	restarts bool

	memory Memory
	last   proposal
}

// run returns the counts of the role, beginning with a first one, with a decision every 5 s.
func (tr *training) run(t *testing.T, count int, span time.Duration) []int {
	t.Helper()
	counts, ready, since := []int{count}, count, time.Duration(0)
	for after := time.Duration(0); after <= span; after += 5 * time.Second {
		if set, ok := tr.others[after]; ok {
			count, since = set, after
			counts = append(counts, count)
		}
		if count < ready || after-since >= tr.startup {
			ready = count
		}
		if tr.restarts {
			tr.memory = restarted(t, tr.memory)
		}
		tr.last = marginalGain(tr.algorithm, &tr.memory, asking{
			now: noon.Add(after), count: count, ready: ready, policy: &tr.policy,
			metric: Measurement{Value: tr.progress(ready, after), At: noon.Add(after)},
		})
		sane(t, tr.last)
		if tr.last.abstains && tr.last.count != count {
			t.Fatalf("after %s, it abstains from %d members with %d: %s", after, count, tr.last.count, tr.last.why)
		}
		if next := min(max(tr.last.count, tr.policy.Min), tr.policy.Max); next != count {
			count, since = next, after
			counts = append(counts, count)
		}
	}
	return counts
}

// restarted returns what a controller knows after a restart.
func restarted(t *testing.T, m Memory) Memory {
	t.Helper()
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var again Memory
	if err := json.Unmarshal(data, &again); err != nil {
		t.Fatal(err)
	}
	return again
}

// always returns a job that does not change.
func always(j job) func(int, time.Duration) float64 {
	return func(members int, _ time.Duration) float64 { return j(members) }
}

// upTo returns the counts from 1 to another, followed by then.
func upTo(to int, then ...int) []int {
	var counts []int
	for n := 1; n <= to; n++ {
		counts = append(counts, n)
	}
	return append(counts, then...)
}

// TestMarginalGainKnee checks that roles find their knees within hours, and stay there for the rest of a day.
func TestMarginalGainKnee(t *testing.T) {
	for name, test := range map[string]struct {
		job       job
		threshold float64
		first     int
		policy    domain.AutoscalingPolicy
		want      []int
		why       string
	}{
		"classification, 10 %": {
			classificationCPU, 0.1, 1, domain.AutoscalingPolicy{Min: 1, Max: 35}, upTo(16, 15),
			"the best known count is 15: from 15 to 16, each added -19 % of the previous progress per member; threshold 10 %",
		},
		"classification, 25 %": {
			classificationCPU, 0.25, 1, domain.AutoscalingPolicy{Min: 1, Max: 35}, upTo(11, 10),
			"the best known count is 10: from 10 to 11, each added 24 % of the previous progress per member; threshold 25 %",
		},
		"classification, 40 %": {
			classificationCPU, 0.4, 1, domain.AutoscalingPolicy{Min: 1, Max: 35}, []int{1, 2, 3, 2},
			"the best known count is 2: from 2 to 3, each added 37 % of the previous progress per member; threshold 40 %",
		},
		"regression, 10 %": {
			regressionCPU, 0.1, 1, domain.AutoscalingPolicy{Min: 1, Max: 35}, []int{1, 2, 3, 2},
			"the best known count is 2: from 2 to 3, each added 5 % of the previous progress per member; threshold 10 %",
		},
		"regression, 5 %": {
			regressionCPU, 0.05, 1, domain.AutoscalingPolicy{Min: 1, Max: 35}, upTo(11, 10),
			"the best known count is 10: from 10 to 11, each added -13 % of the previous progress per member; threshold 5 %",
		},
		"two GPUs": {
			classificationGPU, 0.1, 1, domain.AutoscalingPolicy{Min: 1, Max: 2}, []int{1, 2},
			"the best known count is 2: from 1 to 2, each added 75 % of the previous progress per member; threshold 10 %",
		},
		"parameter servers": {
			parameterServers, 0.1, 2, domain.AutoscalingPolicy{Min: 2, Max: 10}, []int{2, 3, 4, 5, 6, 5},
			"the best known count is 5: from 5 to 6, each added 3 % of the previous progress per member; threshold 10 %",
		},
		"from too many": {
			parameterServers, 0.1, 8, domain.AutoscalingPolicy{Min: 1, Max: 10}, []int{8, 9, 7, 6, 5, 4, 5},
			"the best known count is 5: from 5 to 6, each added 3 % of the previous progress per member; threshold 10 %",
		},
		"from as many as there may be": {
			parameterServers, 0.1, 7, domain.AutoscalingPolicy{Min: 1, Max: 7}, []int{7, 6, 5, 4, 5},
			"the best known count is 5: from 5 to 6, each added 3 % of the previous progress per member; threshold 10 %",
		},
		"from too many, down to the least": {
			parameterServers, 0.1, 8, domain.AutoscalingPolicy{Min: 6, Max: 10}, []int{8, 9, 7, 6},
			"the best known count is 6: from 6 to 7, each added -18 % of the previous progress per member; threshold 10 %",
		},
		"from the knee": {
			parameterServers, 0.1, 5, domain.AutoscalingPolicy{Min: 1, Max: 10}, []int{5, 6, 4, 5},
			"the best known count is 5: from 5 to 6, each added 3 % of the previous progress per member; threshold 10 %",
		},
		"an ideal job": {
			linear, 0.1, 1, domain.AutoscalingPolicy{Min: 1, Max: 100}, upTo(100),
			"the best known count is 100: from 99 to 100, each added 100 % of the previous progress per member; threshold 10 %",
		},
		"a job of one": {
			func(int) float64 { return 1 }, 0.1, 1, domain.AutoscalingPolicy{Min: 1, Max: 10}, []int{1, 2, 1},
			"the best known count is 1: from 1 to 2, each added 0 % of the previous progress per member; threshold 10 %",
		},
		"no choice": {linear, 0.1, 4, domain.AutoscalingPolicy{Min: 4, Max: 4}, []int{4}, "the best known count is 4"},
		"no job": {
			func(int) float64 { return 0 }, 0.1, 2, domain.AutoscalingPolicy{Min: 1, Max: 4}, []int{2},
			"no progress at a count of 2, or the progress changed",
		},
		"a job that more members break": {
			func(n int) float64 { return float64(n % 4) }, 0.1, 1, domain.AutoscalingPolicy{Min: 1, Max: 10},
			[]int{1, 2, 3, 4, 3},
			"the best known count is 3: from 3 to 4, each added -300 % of the previous progress per member; threshold 10 %",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for restarts, span := range map[bool]time.Duration{false: 24 * time.Hour, true: 3 * time.Hour} {
				tr := training{
					algorithm: domain.MarginalGainAlgorithm{Threshold: test.threshold}, policy: test.policy,
					progress: always(test.job),
					startup:  20 * time.Second, restarts: restarts,
				}
				if diff := cmp.Diff(test.want, tr.run(t, test.first, span)); diff != "" {
					t.Errorf("counts with restarts %v (-want +got):\n%s", restarts, diff)
				}
				if known := len(tr.memory.Gain.Known); known > maxProgresses {
					t.Errorf("%d counts are remembered", known)
				}
				g := *tr.memory.Gain
				if got := g.reason(tr.algorithm); g.Knee > 0 && got != test.why {
					t.Errorf("%q, want %q", got, test.why)
				}
			}
		})
	}
}

// TestMarginalGainNoise measures progress with a random error of up to 2 %.
func TestMarginalGainNoise(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		tr := training{
			algorithm: domain.MarginalGainAlgorithm{Threshold: 0.15}, policy: domain.AutoscalingPolicy{Min: 1, Max: 10},
			startup: 20 * time.Second,
			progress: func(n int, _ time.Duration) float64 {
				return parameterServers(n) * (0.98 + 0.04*random.Float64())
			},
		}
		if diff := cmp.Diff([]int{1, 2, 3, 4, 5, 6, 5}, tr.run(t, 1, 24*time.Hour)); diff != "" {
			t.Errorf("counts of seed %d (-want +got):\n%s", seed, diff)
		}
	}
}

func TestMarginalGainChanges(t *testing.T) {
	hours := func(n int) *domain.Duration { return new(domain.Duration(time.Duration(n) * time.Hour)) }
	// bound scales ideally up to a number of members, and not beyond.
	bound := func(n int) job { return func(members int) float64 { return float64(min(members, n)) } }
	for name, test := range map[string]struct {
		progress func(int, time.Duration) float64
		retry    *domain.Duration
		others   map[time.Duration]int
		span     time.Duration
		want     []int
	}{
		"a larger job": {
			func(n int, after time.Duration) float64 {
				if after < time.Hour {
					return bound(3)(n)
				}
				return 10 * bound(6)(n)
			}, nil, nil, 24 * time.Hour, []int{1, 2, 3, 4, 3, 4, 5, 6, 7, 6},
		},
		"a smaller job": {
			func(n int, after time.Duration) float64 {
				if after < time.Hour {
					return bound(6)(n)
				}
				return 10 * bound(3)(n)
			}, nil, nil, 24 * time.Hour, []int{1, 2, 3, 4, 5, 6, 7, 6, 7, 5, 4, 3, 2, 3},
		},
		"another job under way": { // at 4 members, which are no better than 3 were before
			func(n int, after time.Duration) float64 {
				if after < 4*time.Minute {
					return bound(6)(n)
				}
				return bound(6)(n) / 10
			}, nil, nil, 24 * time.Hour, []int{1, 2, 3, 4, 3, 4, 5, 6, 7, 6},
		},
		"a job that is a bit faster": {
			func(n int, after time.Duration) float64 {
				if after < time.Hour {
					return bound(3)(n)
				}
				return 1.2 * bound(6)(n)
			}, nil, nil, 24 * time.Hour, []int{1, 2, 3, 4, 3},
		},
		"a checkpoint of a minute": {
			func(n int, after time.Duration) float64 {
				if after >= time.Hour && after < time.Hour+time.Minute {
					return bound(3)(n) / 2
				}
				return bound(3)(n)
			}, nil, nil, 24 * time.Hour, []int{1, 2, 3, 4, 3},
		},
		"a job that ends, and comes again": {
			func(n int, after time.Duration) float64 {
				if after >= time.Hour && after < 3*time.Hour {
					return 0
				}
				return bound(3)(n)
			}, nil, nil, 24 * time.Hour, []int{1, 2, 3, 4, 3},
		},
		"a job that ends while a count is tried, and comes again": { // what 4 members would bring is unknown
			func(n int, after time.Duration) float64 {
				if after >= 4*time.Minute && after < 3*time.Hour {
					return 0
				}
				return bound(6)(n)
			}, nil, nil, 24 * time.Hour, []int{1, 2, 3, 4, 3, 4, 5, 6, 7, 6},
		},
		"a job that ends at its knee, believed for 10 hours": {
			func(n int, after time.Duration) float64 {
				if after >= 5*time.Hour && after < 7*time.Hour {
					return 0
				}
				return bound(3)(n)
			}, hours(10), nil, 12 * time.Hour, []int{1, 2, 3, 4, 3, 4, 2, 3},
		},
		"a knee that is believed for 10 hours": {
			always(bound(3)), hours(10), nil, 24 * time.Hour, []int{1, 2, 3, 4, 3, 4, 2, 3, 4, 2, 3},
		},
		"more by others, at the knee": {
			always(bound(3)), nil, map[time.Duration]int{time.Hour: 8}, 24 * time.Hour, []int{1, 2, 3, 4, 3, 8, 3},
		},
		"fewer by others, at the knee": {
			always(bound(3)), nil, map[time.Duration]int{time.Hour: 1}, 24 * time.Hour, []int{1, 2, 3, 4, 3, 1, 3},
		},
		"more by others, under way": {
			always(bound(8)), nil, map[time.Duration]int{2 * time.Minute: 6}, 24 * time.Hour,
			[]int{1, 2, 6, 7, 8, 9, 8},
		},
		"too many by others, under way": {
			always(bound(3)), nil, map[time.Duration]int{2 * time.Minute: 6}, 24 * time.Hour,
			[]int{1, 2, 6, 7, 5, 4, 3, 2, 3},
		},
		"too many by others, at a job that ends there": {
			always(bound(6)), nil, map[time.Duration]int{2 * time.Minute: 6}, 24 * time.Hour, []int{1, 2, 6, 7, 5, 6},
		},
		"far too many by others, under way": {
			always(bound(3)), nil, map[time.Duration]int{2 * time.Minute: 29}, 24 * time.Hour,
			[]int{1, 2, 29, 2, 3, 4, 3},
		},
		"none by others": {
			always(bound(3)), nil, map[time.Duration]int{2 * time.Minute: 0, time.Hour: 1}, 24 * time.Hour,
			[]int{1, 2, 0, 1, 2, 3, 4, 3},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tr := training{
				algorithm: domain.MarginalGainAlgorithm{Threshold: 0.1, RetryAfter: test.retry},
				policy:    domain.AutoscalingPolicy{Min: 0, Max: 30},
				progress:  test.progress, others: test.others, startup: 20 * time.Second,
			}
			if diff := cmp.Diff(test.want, tr.run(t, 1, test.span)); diff != "" {
				t.Errorf("counts (-want +got):\n%s", diff)
			}
		})
	}
}

// TestMarginalGainBounds checks a policy that allows more members, and fewer, after the knee was found.
func TestMarginalGainBounds(t *testing.T) {
	tr := training{
		algorithm: domain.MarginalGainAlgorithm{Threshold: 0.1}, policy: domain.AutoscalingPolicy{Min: 1, Max: 3},
		progress: always(parameterServers),
		startup:  20 * time.Second,
	}
	got := [][]int{tr.run(t, 1, time.Hour)}
	tr.policy.Max = 8
	got = append(got, tr.run(t, 3, time.Hour))
	tr.policy.Max = 4
	got = append(got, tr.run(t, 4, time.Hour))
	if diff := cmp.Diff([][]int{{1, 2, 3}, {3, 4, 5, 6, 5}, {4}}, got); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

// TestMarginalGainWaits goes through the first decisions one by one.
func TestMarginalGainWaits(t *testing.T) {
	type asks struct {
		count    int
		abstains bool
		why      string
	}
	at := func(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }
	var m Memory
	for i, step := range []struct {
		seconds, count, ready int
		value                 float64
		want                  asks
	}{
		{0, 0, 0, 0, asks{0, true, "no members, so no progress to measure"}},
		{5, 2, 0, 0, asks{2, true, "0 of 2 members are ready: their progress is measured once all are"}},
		{10, 2, 2, 900, asks{2, true, "measuring the progress at a count of 2"}}, // the first half does not count
		{35, 2, 2, 900, asks{2, true, "measuring the progress at a count of 2"}},
		{40, 2, 2, 10, asks{2, true, "measuring the progress at a count of 2"}},
		{65, 2, 1, 5, asks{2, true, "1 of 2 members are ready: their progress is measured once all are"}},
		{70, 2, 2, 10, asks{2, true, "measuring the progress at a count of 2"}},
		{110, 2, 2, math.NaN(), asks{2, true, notANumber}},
		{115, 2, 2, 9, asks{2, true, "measuring the progress at a count of 2"}},
		{130, 2, 2, 11, asks{3, false, "trying a count of 3"}},
		{135, 2, 2, 11, asks{3, false, "trying a count of 3"}}, // not done yet
		{140, 3, 2, 11, asks{3, true, "2 of 3 members are ready: their progress is measured once all are"}},
		{145, 3, 3, 15, asks{3, true, "measuring the progress at a count of 3"}},
		{205, 3, 3, 14, asks{
			4, false,
			"trying a count of 4: from 2 to 3, each added 80 % of the previous progress per member; threshold 10 %",
		}},
		{210, 4, 4, 14, asks{4, true, "measuring the progress at a count of 4"}},
		{270, 4, 4, 14, asks{
			3, false,
			"the best known count is 3: from 3 to 4, each added 0 % of the previous progress per member; threshold 10 %",
		}},
		{275, 3, 3, 14, asks{3, true, "the best known count is 3"}},
	} {
		p := marginalGain(domain.MarginalGainAlgorithm{Threshold: 0.1}, &m, asking{
			now: at(step.seconds), count: step.count, ready: step.ready,
			policy: &domain.AutoscalingPolicy{Min: 1, Max: 8},
			metric: Measurement{Value: step.value, At: at(step.seconds)},
		})
		got := asks{p.count, p.abstains, p.why}
		if diff := cmp.Diff(step.want, got, cmp.AllowUnexported(asks{})); diff != "" {
			t.Errorf("decision %d (-want +got):\n%s", i, diff)
		}
	}
	want := []Progress{{2, 10}, {3, 14}, {4, 14}}
	if diff := cmp.Diff(want, m.Gain.Known); diff != "" {
		t.Errorf("what is known (-want +got):\n%s", diff)
	}
}

// TestMarginalGainStaged checks that the requested count may be reached in several steps, as with rates.
func TestMarginalGainStaged(t *testing.T) {
	m := Memory{Gain: &Gain{Count: 8, Next: 3, Knee: 3, Known: []Progress{{2, 2}, {3, 3}, {4, 3}, {8, 3}}}}
	for _, count := range []int{8, 6, 4, 3} {
		in := asking{
			now: noon, count: count, ready: count, policy: &domain.AutoscalingPolicy{Min: 1, Max: 8},
			metric: Measurement{Value: 3},
		}
		if p := marginalGain(domain.MarginalGainAlgorithm{Threshold: 0.1}, &m, in); p.count != 3 ||
			p.abstains != (count == 3) {
			t.Errorf("at %d members: %+v", count, p)
		}
	}
}

// TestMarginalGainStale checks that values older than the members are ignored.
func TestMarginalGainStale(t *testing.T) {
	var m Memory
	for seconds := range 300 {
		in := asking{
			now: noon.Add(time.Duration(seconds) * time.Second), count: 2, ready: 2,
			policy: &domain.AutoscalingPolicy{Min: 1, Max: 8},
			metric: Measurement{Value: 3, At: noon.Add(-time.Second)},
		}
		if p := marginalGain(domain.MarginalGainAlgorithm{Threshold: 0.1}, &m, in); !p.abstains {
			t.Fatalf("after %d s: %+v", seconds, p)
		}
	}
}
