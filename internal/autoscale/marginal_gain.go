package autoscale

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// marginalGain adds members to a role as long as that brings progress: training with parameter servers, or with Spark
// workers, gets faster up to some number of them and slower beyond (B. Krasuski's measurements of 2020 and P. Stolin's
// of 2021), and that number depends on the job. The metric is the progress of the whole group, such as the steps of all
// members per second; more is better.
//
// Progress is measured while all members are ready, for the settle time. Only the second half of that time counts, as
// members have to warm up and rates look back. The progress of n members, p(n), is then compared with that of the next
// smaller measured count, n−k:
//
//	gain = ((p(n) − p(n−k)) / k) ÷ (p(n−k) / (n−k))
//
// which is what each further member brought, as a fraction of the average per member before: 1 if a job scales ideally,
// 0 if members bring nothing, and negative if they do harm. While the gain is above the threshold, one more is tried.
// Once it is not, the role goes back to the smaller count, the knee, and stays there. If the first trial brings
// nothing, the initial count may already be too large, and smaller ones are tried in the same way, as long as what they
// give up is not above the threshold: a knee is a count whose neighbours within the policy's bounds were both measured.
//
// No count is tried twice. The search starts over, with everything forgotten, when the knee is older than the retry
// time, or when the progress of a count was more than a quarter off twice in a row, which means another job; once may
// be a checkpoint. A count that others set is measured and compared like any other. No progress at all, at a count that
// had some, is ignored: the job has ended, or not begun. Counts found to make none before that are forgotten, as the
// job may have been over by then.
//
// An error of 1 % in the progress of n members is one of n % in the gain: the larger the role, the longer it has to
// settle.
//
// What m.Gain points to is changed in place.
func marginalGain(a domain.MarginalGainAlgorithm, m *Memory, in asking) proposal {
	switch {
	case !finite(in.metric.Value):
		return undecided(in, notANumber)
	case in.count <= 0:
		if m.Gain != nil {
			m.Gain.begin(time.Time{})
		}
		return undecided(in, "no members, so no progress to measure")
	}
	if m.Gain == nil {
		m.Gain = &Gain{Count: in.count, Next: in.count}
	}
	g := m.Gain
	g.follow(in)
	if g.Next == g.Count && in.ready != in.count {
		g.begin(time.Time{})
		return undecided(in,
			say(in.ready, " of ", in.count, " members are ready: their progress is measured once all are"))
	}
	if g.Next == g.Count {
		progress, measured := g.measure(a, in)
		switch {
		case !measured && g.Knee == g.Count:
			return undecided(in, say("the best known count is ", g.Count))
		case !measured:
			return undecided(in, say("measuring the progress at a count of ", g.Count))
		case !g.learn(progress):
			return undecided(in, say("no progress at a count of ", g.Count, ", or the progress changed"))
		}
		g.decide(a, in, progress)
	}
	why := g.reason(a)
	if g.Next == g.Count {
		return undecided(in, why)
	}
	return proposal{count: g.Next, why: why}
}

// Gain is what is known of the progress that members brought.
type Gain struct {
	// Count is the count whose progress is measured, and Next the one asked for. They are the same while it is
	// measured.
	Count int `json:"count"`
	Next  int `json:"next"`
	// Since is when all members became ready, or the last measurement was; zero while they are not ready.
	Since time.Time `json:"since,omitzero"`
	// Sum is the sum of the values measured so far, and Samples their number.
	Sum     float64 `json:"sum,omitempty"`
	Samples int     `json:"samples,omitempty"`
	// Known are the measured counts, smallest first: at most the 32 nearest to the one measured last.
	Known []Progress `json:"known,omitempty"`
	// Changed means that the last measurement of a known count was far from the known value.
	Changed bool `json:"changed,omitempty"`
	// Knee is the count beyond which members bring nothing, and KneeAt when it was found; 0 during the search.
	Knee   int       `json:"knee,omitempty"`
	KneeAt time.Time `json:"knee_at,omitzero"`
}

// Progress is the progress of a number of members, in the metric's unit.
type Progress struct {
	Count int     `json:"count"`
	Value float64 `json:"value"`
}

const (
	// maxProgresses limits what is remembered, and so what is stored for a role of thousands.
	maxProgresses = 32
	// anotherJob is the relative change in the progress of a count that means another job.
	anotherJob = 0.25
)

// gainOver returns what each further member brought, compared with a smaller count: see [marginalGain].
func (p Progress) gainOver(smaller Progress) float64 {
	switch {
	case smaller.Value > 0:
		each := (p.Value - smaller.Value) / float64(p.Count-smaller.Count)
		return each / (smaller.Value / float64(smaller.Count))
	case p.Value > 0:
		return math.MaxFloat64
	}
	return 0
}

// follow handles a changed count. A count on the way to Next keeps Next; any other count was set by others.
func (g *Gain) follow(in asking) {
	if in.count != g.Count {
		onTheWay := min(g.Count, g.Next) <= in.count && in.count <= max(g.Count, g.Next)
		g.Count, g.Changed = in.count, false
		g.begin(time.Time{})
		if !onTheWay {
			g.Next = in.count
		}
	}
	if lowest, highest := searched(in.policy); g.Next != g.Count && (g.Next < lowest || g.Next > highest) {
		g.Next = g.Count // the policy was changed
	}
}

// searched returns the range of the search.
func searched(policy *domain.AutoscalingPolicy) (lowest, highest int) {
	return max(policy.Min, 1), min(policy.Max, domain.MaxReplicas)
}

// begin starts a measurement at a time.
func (g *Gain) begin(at time.Time) { g.Since, g.Sum, g.Samples = at, 0, 0 }

// measure takes a sample. Once the settle time is over, it returns the mean, and begins again.
func (g *Gain) measure(a domain.MarginalGainAlgorithm, in asking) (float64, bool) {
	if g.Since.IsZero() || in.now.Before(g.Since) {
		g.begin(in.now)
	}
	settle, elapsed := a.Settle.Or(domain.DefaultGainSettle), in.now.Sub(g.Since)
	fresh := in.metric.At.IsZero() || !in.metric.At.Before(g.Since)
	if elapsed >= settle/2 && fresh {
		// otherwise a member could make it overflow, and it could not be stored
		g.Sum += min(max(in.metric.Value, -largest), largest)
		g.Samples++
	}
	if elapsed < settle || g.Samples == 0 {
		return 0, false
	}
	mean := max(g.Sum/float64(g.Samples), 0)
	g.begin(in.now)
	return mean, finite(mean)
}

// learn adds a measurement to the known ones, and reports whether a decision can be made.
func (g *Gain) learn(progress float64) bool {
	i, known := g.find(g.Count)
	switch {
	case progress == 0 && (known || len(g.Known) == 0):
		g.Changed = false
		if known && g.Known[i].Value > 0 {
			g.forgetNone()
		}
		return false
	case !known:
		g.Known = slices.Insert(g.Known, i, Progress{Count: g.Count, Value: progress})
		if last := len(g.Known) - 1; last >= maxProgresses {
			if g.Count-g.Known[0].Count < g.Known[last].Count-g.Count {
				g.Known = slices.Delete(g.Known, last, last+1)
			} else {
				g.Known = slices.Delete(g.Known, 0, 1)
			}
		}
	case math.Abs(progress-g.Known[i].Value) <= anotherJob*g.Known[i].Value:
		g.Changed = false
	case !g.Changed:
		g.Changed = true
		return false
	default:
		g.forget(progress)
	}
	return true
}

// forget restarts the search from the present count.
func (g *Gain) forget(progress float64) {
	g.Known = append(g.Known[:0], Progress{Count: g.Count, Value: progress})
	g.Changed, g.Knee, g.KneeAt = false, 0, time.Time{}
}

// forgetNone forgets the counts that made no progress, and the knee found by them. A count that had some makes none
// now, either, so the job may have been over when they were tried.
func (g *Gain) forgetNone() {
	before := len(g.Known)
	g.Known = slices.DeleteFunc(g.Known, func(p Progress) bool { return p.Value == 0 })
	if len(g.Known) < before {
		g.Knee, g.KneeAt = 0, time.Time{}
	}
}

// find returns the index of a count among the known ones, or where it belongs.
func (g *Gain) find(count int) (int, bool) {
	return slices.BinarySearchFunc(g.Known, count,
		func(p Progress, count int) int { return cmp.Compare(p.Count, count) })
}

// decide chooses the next count from the known ones, which include the present one.
func (g *Gain) decide(a domain.MarginalGainAlgorithm, in asking, progress float64) {
	if g.Knee == g.Count && a.RetryAfter != nil && in.now.Sub(g.KneeAt) >= time.Duration(*a.RetryAfter) {
		g.forget(progress)
	}
	best, _ := g.find(g.Count)
	for best > 0 && !g.worth(a, best) {
		best--
	}
	for best+1 < len(g.Known) && g.worth(a, best+1) {
		best++
	}
	count, knee := g.Known[best].Count, 0
	lowest, highest := searched(in.policy)
	_, more := g.find(count + 1)
	_, fewer := g.find(count - 1)
	switch {
	case !more && count < highest:
		g.Next = count + 1
	case !fewer && count > lowest:
		g.Next = count - 1
	default:
		g.Next, knee = count, count
	}
	if g.Next < lowest || g.Next > highest {
		g.Next = g.Count // the best is out of bounds by now; bounds are enforced elsewhere
	}
	if knee != g.Knee {
		g.Knee, g.KneeAt = knee, in.now
	}
}

// worth reports whether the members of a known count are worth having, compared with the next smaller one.
func (g *Gain) worth(a domain.MarginalGainAlgorithm, i int) bool {
	return g.Known[i].gainOver(g.Known[i-1]) > a.Threshold
}

// reason says why the next count is what it is.
func (g *Gain) reason(a domain.MarginalGainAlgorithm) string {
	what := "trying a count of "
	if g.Next == g.Knee {
		what = "the best known count is "
	}
	i, known := g.find(g.Next)
	switch {
	case !known && g.Next > g.Count:
		i-- // more are tried because of what the last ones brought
	case !known, i+1 < len(g.Known) && !g.worth(a, i+1):
		i++ // those given up, or not taken, bring too little
	}
	if i < 1 || i >= len(g.Known) {
		return say(what, g.Next)
	}
	gain := math.Round(100 * min(g.Known[i].gainOver(g.Known[i-1]), domain.MaxReplicas))
	return say(what, g.Next, ": from ", g.Known[i-1].Count, " to ", g.Known[i].Count, ", each added ", gain,
		" % of the previous progress per member; threshold ",
		100*a.Threshold, " %")
}
