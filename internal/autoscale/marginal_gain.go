package autoscale

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// marginalGain adds members to a role as long as that brings progress: training with parameter servers, and that of
// Spark's workers, gets faster up to some number of them and slower beyond (B. Krasuski's measurements of 2020 and P.
// Stolin's of 2021), and where that is depends on the job. The metric is the progress of the whole group, such as the
// steps of all members a second; more is better.
//
// Progress is measured while all members are ready, for the time that the algorithm is to settle. Only the second half
// of that time counts: members have to warm up, and rates look back. What n members reach, p(n), is then compared with
// what the next smaller count reached that was measured, n−k:
//
//	gain = ((p(n) − p(n−k)) / k) ÷ (p(n−k) / (n−k))
//
// which is what each further member brought, as a share of what a member brought on average before: 1 where a job
// scales ideally, 0 where members bring nothing, and less where they harm. While the gain is above the threshold, one
// more is tried. Once it is not, the role goes back to the smaller count, the knee, and stays there. Where the first
// trial brings nothing, the count at which it began may already be too large, and smaller ones are tried in the same
// way, for as long as what they give up is not above the threshold: a knee is a count of which both neighbours within
// the policy's bounds were measured.
//
// No count is tried twice. The search begins anew, with all forgotten, when the knee has been believed for the time to
// retry, or when the progress of a count was more than a quarter off twice in a row, which is another job; once may be
// a checkpoint. A count that others set is measured and compared as any other one. No progress at all is no news at a
// count that had some: the job has ended, or not begun. Counts that were found to make none before that are forgotten,
// as it may have been over by then.
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
		return undecided(in, "without members, there is no progress to measure")
	}
	if m.Gain == nil {
		m.Gain = &Gain{Count: in.count, Next: in.count}
	}
	g := m.Gain
	g.follow(in)
	if g.Next == g.Count && in.ready != in.count {
		g.begin(time.Time{})
		return undecided(in, say(in.ready, " of ", in.count, " members are ready: their progress is measured once all are"))
	}
	if g.Next == g.Count {
		progress, measured := g.measure(a, in)
		switch {
		case !measured && g.Knee == g.Count:
			return undecided(in, say("the best count known is ", g.Count))
		case !measured:
			return undecided(in, say("measuring the progress at a count of ", g.Count))
		case !g.learn(progress):
			return undecided(in, say("no progress at a count of ", g.Count, ", or another one than before"))
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
	// Count is the count whose progress is measured, and Next the one that is asked for: the same while it is measured.
	Count int `json:"count"`
	Next  int `json:"next"`
	// Since is since when all members have been ready, or since the last measurement; zero while they are not.
	Since time.Time `json:"since,omitzero"`
	// Sum and Samples are the values that were measured so far, added up, and their number.
	Sum     float64 `json:"sum,omitempty"`
	Samples int     `json:"samples,omitempty"`
	// Known are the counts that were measured, the smallest first: the 32 at most that are nearest to the one that was
	// measured last.
	Known []Progress `json:"known,omitempty"`
	// Changed tells that the last measurement of a known count was far from what is known.
	Changed bool `json:"changed,omitempty"`
	// Knee is the count beyond which members bring nothing, and KneeAt when it was found; 0 while it is searched for.
	Knee   int       `json:"knee,omitempty"`
	KneeAt time.Time `json:"knee_at,omitzero"`
}

// Progress is how fast a number of members gets on, in the metric's unit.
type Progress struct {
	Count int     `json:"count"`
	Value float64 `json:"value"`
}

const (
	// maxProgresses bounds what is remembered, and with it what has to be stored of a role of thousands.
	maxProgresses = 32
	// anotherJob is by which share the progress of a count changes where the job does.
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

// follow takes notice of a count that has changed. On the way to the one that is asked for it is still asked for that;
// any other count was set by others.
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

// searched returns the counts between which is searched.
func searched(policy *domain.AutoscalingPolicy) (lowest, highest int) {
	return max(policy.Min, 1), min(policy.Max, domain.MaxReplicas)
}

// begin has a measurement begin at a time.
func (g *Gain) begin(at time.Time) { g.Since, g.Sum, g.Samples = at, 0, 0 }

// measure takes a sample. Once it has settled, it returns the mean, and begins again.
func (g *Gain) measure(a domain.MarginalGainAlgorithm, in asking) (float64, bool) {
	if g.Since.IsZero() || in.now.Before(g.Since) {
		g.begin(in.now)
	}
	settle, elapsed := a.Settle.Or(domain.DefaultGainSettle), in.now.Sub(g.Since)
	fresh := in.metric.At.IsZero() || !in.metric.At.Before(g.Since)
	if elapsed >= settle/2 && fresh {
		g.Sum += min(max(in.metric.Value, -largest), largest) // or else a member could have it overflow, and then it can't be stored
		g.Samples++
	}
	if elapsed < settle || g.Samples == 0 {
		return 0, false
	}
	mean := max(g.Sum/float64(g.Samples), 0)
	g.begin(in.now)
	return mean, finite(mean)
}

// learn adds what was measured to what is known, and reports whether a decision can be made.
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

// forget has the search begin anew with the present count.
func (g *Gain) forget(progress float64) {
	g.Known = append(g.Known[:0], Progress{Count: g.Count, Value: progress})
	g.Changed, g.Knee, g.KneeAt = false, 0, time.Time{}
}

// forgetNone forgets the counts that made no progress, and the knee that was found by them: there is none at a count
// that had some either, and so it may be the job that had ended while they were tried.
func (g *Gain) forgetNone() {
	before := len(g.Known)
	g.Known = slices.DeleteFunc(g.Known, func(p Progress) bool { return p.Value == 0 })
	if len(g.Known) < before {
		g.Knee, g.KneeAt = 0, time.Time{}
	}
}

// find returns where a count is among those that are known, or belongs there.
func (g *Gain) find(count int) (int, bool) {
	return slices.BinarySearchFunc(g.Known, count, func(p Progress, count int) int { return cmp.Compare(p.Count, count) })
}

// decide chooses the next count by what is known, of which the present count is one.
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
		g.Next = g.Count // what is best is out of bounds by now: the bounds are brought about elsewhere
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
		what = "the best count known is "
	}
	i, known := g.find(g.Next)
	switch {
	case !known && g.Next > g.Count:
		i-- // more are tried for what the last ones brought
	case !known, i+1 < len(g.Known) && !g.worth(a, i+1):
		i++ // what those brought is too little that are given up, or not taken
	}
	if i < 1 || i >= len(g.Known) {
		return say(what, g.Next)
	}
	gain := math.Round(100 * min(g.Known[i].gainOver(g.Known[i-1]), domain.MaxReplicas))
	return say(what, g.Next, ": from ", g.Known[i-1].Count, " to ", g.Known[i].Count, ", each brought ", gain, " % of what one did before, and ",
		100*a.Threshold, " % are wanted")
}
