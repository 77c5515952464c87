package sweep

import (
	"math"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// rlLab are the seconds that an experiment took on one A40, by how many there were, from 1 to 37: the median times in
// the paper that reference system rl-lab is from. The 38th died of CUDA out of memory.
var rlLab = []float64{
	508.5, 576, 671, 778, 899, 1021, 1147, 1277, 1450, 1645, 1803, 1973, 2136, 2308, 2484, 2638, 2814, 2983, 3146, 3318,
	3472.5, 3624, 3785, 3933, 4152, 4301, 4462,
	4645, 4813, 4980, 5166, 5280, 5435, 5601, 5849, 5950, 6094,
}

// course is the result of a sweep.
type course struct {
	succeeded, outOfMemory int
	makespan, mean         time.Duration
	most                   int
}

// lab50 runs 50 experiments of 1,199 MiB on that GPU, each of which progresses as fast as the table says for the
// present number.
func lab50(t *testing.T, s domain.Sweep, pools map[string]domain.GPUPoolDocument) course {
	t.Helper()
	const need = 1199
	cluster := Cluster{Hosts: hostsOf(8, "vm"), Pools: pools, FreeGPUMiB: map[string]int64{}}
	q := queueOf(s)
	q.Runs = map[string]domain.Run{}
	left, total, was, now := map[string]float64{}, time.Duration(0), course{}, noon
	for step := 0; ; step++ {
		if step > 10_000 {
			t.Fatalf("it does not end: %+v", was)
		}
		cluster.FreeGPUMiB["GPU-a"] = 46_068 - need*int64(len(left))
		got := Admit(cluster, []Queue{q}, now)
		for _, start := range got.Starts {
			run := Start(q.Document, s.Run(start.Key), q.Runs[start.Key], start.At, step, now)
			q.Runs[start.Key] = run
			if len(left) == len(rlLab) {
				o := domain.Observed{State: domain.StateFailed, ExitCode: new(1), FinishedAt: &now}
				q.Runs[start.Key] = Ended(s, run, o,
					[]string{"RuntimeError: CUDA out of memory. Tried to allocate 1.17 GiB"}, len(left), now)
				was.outOfMemory++
				continue
			}
			left[start.Key] = 1
		}
		was.most = max(was.most, len(left))
		if len(left) == 0 {
			if n := len(got.Starts); n == 0 {
				was.mean = total / time.Duration(max(was.succeeded, 1))
				return was
			}
			continue
		}
		// Time passes until one ends, or there is something to decide.
		rate := 1 / rlLab[len(left)-1]
		passes := math.Inf(1)
		for _, work := range left {
			passes = min(passes, work/rate)
		}
		if !got.Next.IsZero() {
			passes = min(passes, got.Next.Sub(now).Seconds())
		}
		now = now.Add(time.Duration(math.Ceil(passes * float64(time.Second))))
		for key := range left {
			if left[key] -= passes * rate; left[key] > 1e-9 {
				continue
			}
			delete(left, key)
			q.Runs[key] = Ended(s, q.Runs[key],
				domain.Observed{State: domain.StateCompleted, ExitCode: new(0), FinishedAt: &now}, nil, 0, now)
			was.succeeded++
			was.makespan = now.Sub(noon)
			total += was.makespan
		}
	}
}

// TestRLLab runs 50 experiments, which all give a result. Results come earlier with the number side by side that
// finishes most per hour.
func TestRLLab(t *testing.T) {
	card := map[string][]domain.Device{"vm": a40("GPU-a")}
	pool := slots(1199, card)
	asked := onGPUs(sweepOf("lr", 50), 1199)
	measured := asked
	measured.Admission = domain.Admission{FreeGPUMemory: true, ReservePercent: new(3.0), Settle: seconds(20)}
	// naive is a pool with all memory divided into slots: floor(46,068 / 1,199) is 38.
	naive := slots(1199, card)
	doc := naive["p"]
	doc.Spec.ReservePercent = new(0.0)
	naive["p"] = doc
	once := asked
	once.Retry.OutOfMemory = new(0)

	for _, test := range []struct {
		name     string
		sweep    domain.Sweep
		pools    map[string]domain.GPUPoolDocument
		most     int
		makespan float64 // in seconds; 0 if it does not matter
		mean     float64
	}{
		{"as many as there are slots", asked, pool, 37, 8230, 6649},
		{"8 at a time", atMost(8, asked), pool, 8, 8238, 4620},
		{"9 at a time", atMost(9, asked), pool, 9, 8149, 0},
		{"one by one", atMost(1, asked), pool, 1, 25_425, 0},
		{"as many as there is memory for", measured, pool, 37, 0, 0},
		{"8 at a time, once there is memory", atMost(8, measured), pool, 8, 0, 0},
		{"as many as there are slots without a reserve", asked, naive, 37, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := lab50(t, test.sweep, test.pools)
			t.Logf("%+v", got)
			if got.succeeded != 50 || got.most != test.most {
				t.Errorf("%d give a result, with up to %d at a time", got.succeeded, got.most)
			}
			for what, pair := range map[string][2]float64{
				"makespan":              {got.makespan.Seconds(), test.makespan},
				"mean time to a result": {got.mean.Seconds(), test.mean},
			} {
				if pair[1] > 0 && math.Abs(pair[0]-pair[1]) > 1 {
					t.Errorf("the %s is %.0f s, and in the paper %.0f s", what, pair[0], pair[1])
				}
			}
		})
	}

	all, ours, settling := lab50(t, asked, pool), lab50(t, atMost(8, asked), pool), lab50(t, atMost(8, measured), pool)
	for name, c := range map[string]course{"by slots": ours, "by free memory": settling} {
		earlier, longer := 1-c.mean.Seconds()/all.mean.Seconds(), c.makespan.Seconds()/all.makespan.Seconds()-1
		t.Logf("8 at a time %s: results %.1f %% earlier than 37 at a time, and all of them %.1f %% later", name,
			100*earlier, 100*longer)
		if earlier < 0.25 || longer > 0.02 {
			t.Errorf("8 at a time %s: results come %.1f %% earlier, and all of them %.1f %% later", name, 100*earlier,
				100*longer)
		}
	}
	// Without retries, the 38th dies, as it did in reality.
	if got := lab50(t, once, naive); got.outOfMemory == 0 || got.succeeded+got.outOfMemory != 50 {
		t.Errorf("without retries it went %+v", got)
	}
}
