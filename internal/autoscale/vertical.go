package autoscale

import (
	"encoding/json"
	"math"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Vertical is what is known of what members of a role use: some 3 KB of JSON.
//
// It is learned as the recommender of Kubernetes' Vertical Pod Autoscaler does
// (https://github.com/kubernetes/autoscaler/blob/master/vertical-pod-autoscaler/pkg/recommender): of processors how
// much of the time members use how many, and of memory, of which too little ends a member, the peak of each day. What
// is a day old counts half. Unlike there, the peak is that of the member that uses the most, as all of them get the
// same; and one that ran out of memory counts as if it had used more than it was allowed.
type Vertical struct {
	// At is when it was learned last, and Measured how long members were measured in all.
	At       time.Time     `json:"at,omitzero"`
	Measured time.Duration `json:"measured,omitempty"`
	// CPUs are seconds by the processors that a member kept busy, and MemoryMiB days by their peaks, but for the
	// present one.
	CPUs      histogram `json:"cpus,omitzero"`
	MemoryMiB histogram `json:"memory_mib,omitzero"`
	// Peak is that of the present day, and the time since which it is that.
	Peak *At[float64] `json:"peak,omitempty"`
	// Killed is when the last member ran out of memory of which that is known.
	Killed time.Time `json:"killed,omitzero"`
}

const (
	// verticalHalfLife is how old something is that counts half.
	verticalHalfLife = 24 * time.Hour
	// peakEvery is the time of which one peak is taken.
	peakEvery = 24 * time.Hour
	// longestSample bounds the time for which a measurement stands.
	longestSample = 10 * time.Minute
	// The first buckets end at a hundredth of a processor, and 10 MiB.
	leastCPUs, leastMemoryMiB = 0.01, 10
	// What a member that ran out of memory is taken to need: some more than it was allowed.
	killedFactor, killedMiB = 1.2, 100
	// mostUsed bounds peaks, so that nothing computed of them overflows: it is far beyond what any host has.
	mostUsed = 1e9
	// shareBelow and shareAbove are the percentiles between which what is right lies, whatever is aimed at.
	shareBelow, shareAbove = 0.5, 0.95
)

// Used is what members use at the moment.
type Used struct {
	// CPUs are the processors that members keep busy, and MemoryMiB the most memory that they had of late.
	CPUs, MemoryMiB Measurement
	// Killed is the memory that the member was allowed which ran out of it last, and when; nil where none has.
	Killed *At[float64]
	// Requested is what a member requests that is started now, Size what of that policies have moved, and Sized when
	// they did so last.
	Requested, Size domain.Resources
	Sized           time.Time
	// InPlace is whether running members were to have that size, too.
	InPlace bool
}

// Recommended is what a member of a role should request of a resource.
type Recommended struct {
	// Resource is ResourceCPUs or ResourceMemoryMiB, and Requested what a member requests of it that is started now; 0
	// where that is nothing.
	Resource  string
	Requested float64
	// Target is what it should request, and what is right is between Lower and Upper: all within the policy's bounds.
	// They are nil where it was never measured what members use.
	Target, Lower, Upper *float64
	// Why says in words why.
	Why string
}

// Resize is another size that members are to have which are started from now on.
type Resize struct {
	// To is what they request; what is zero is as declared.
	To domain.Resources
	// Why says in words why.
	Why string
}

// tooNear is by which share a recommendation may differ from what is requested without being applied, as in Kubernetes.
const tooNear = 0.1

// resize returns another size that members are to have; nil where they are to have the one that they have. More memory
// for a member that ran out of it does not wait until enough was learned.
func (a *Autoscaler) resize(d *Decision, state *State, seen *Seen) *Resize {
	by, used := a.policy.Vertical, &seen.Used
	if by == nil || by.ApplyRule() == domain.ApplyNever {
		if used.Size == (domain.Resources{}) {
			return nil
		}
		return &Resize{Why: "the policy applies nothing any more"}
	}
	if a.policy.DryRun || a.policy.Paused == domain.PauseAll {
		return nil
	}
	to, why := domain.Resources{}, make([]string, 0, 2)
	for _, r := range d.Recommended {
		kept := used.Size.CPUs
		if r.Resource == ResourceMemoryMiB {
			kept = float64(used.Size.MemoryMiB)
		}
		if r.Target != nil && r.Requested > 0 && math.Abs(*r.Target/r.Requested-1) > tooNear && (state.Vertical.Measured >= by.Learns() || state.Vertical.urgent(r, used.Sized)) {
			kept = *r.Target
			why = append(why, say(r.Resource, " ", r.Requested, " → ", kept, ": ", r.Why))
		}
		if r.Resource == ResourceMemoryMiB {
			to.MemoryMiB = int64(math.Ceil(kept))
		} else {
			to.CPUs = kept
		}
	}
	switch {
	case to == used.Size && (to == domain.Resources{} || used.InPlace == (by.ApplyRule() == domain.ApplyInPlace)):
		return nil
	case to == used.Size:
		why = append(why, "apply is another rule")
	case len(why) == 0:
		why = append(why, "the policy leaves a resource alone that it moved before")
	}
	return &Resize{to, strings.Join(why, "; ")}
}

// urgent reports whether a recommendation is for more memory than a member ran out of since the size was moved last.
func (v *Vertical) urgent(r Recommended, sized time.Time) bool {
	return r.Resource == ResourceMemoryMiB && *r.Target > r.Requested && v.Killed.After(sized)
}

// The resources that are scaled vertically.
const (
	ResourceCPUs      = "cpus"
	ResourceMemoryMiB = "memory_mib"
)

// recommend learns of what members use, and returns what they should request; nothing of a policy that leaves that
// alone.
func (a *Autoscaler) recommend(state *State, seen *Seen) []Recommended {
	if a.policy.Vertical == nil {
		state.Vertical = nil
		return nil
	}
	if state.Vertical == nil {
		state.Vertical = &Vertical{}
	}
	if k := seen.Used.Killed; k != nil && k.At.Before(state.Since) {
		seen.Used.Killed = nil // it ran out of what somebody else had thought of
	}
	state.Vertical.learn(seen.Now, a.policy.Every(), seen.Used)
	return state.Vertical.recommend(*a.policy.Vertical, seen.Used.Requested)
}

// learn takes notice of what members use at a moment, which stands for the time since the last one, or for an interval.
func (v *Vertical) learn(now time.Time, every time.Duration, used Used) {
	elapsed := now.Sub(v.At)
	switch {
	case v.At.IsZero():
		elapsed = every
	case elapsed < 0: // a clock that was put back
		elapsed = 0
		v.Killed = earlier(v.Killed, now)
		if v.Peak != nil {
			v.Peak.At = earlier(v.Peak.At, now)
		}
	default:
		part := math.Exp2(-elapsed.Hours() / verticalHalfLife.Hours())
		v.CPUs.decay(part)
		v.MemoryMiB.decay(part)
	}
	v.At = now
	stands := min(elapsed, longestSample)
	measured := false
	for _, value := range valuesOf(used.CPUs, now) {
		v.CPUs.add(bucketOf(value, leastCPUs), stands.Seconds())
		measured = true
	}
	for _, value := range valuesOf(used.MemoryMiB, now) {
		v.peak(now, value)
		measured = true
	}
	if k := used.Killed; k != nil && k.At.After(v.Killed) && !k.At.After(now) && k.Value > 0 && finite(k.Value) {
		v.Killed = k.At
		v.peak(now, max(k.Value*killedFactor, k.Value+killedMiB))
	}
	if measured {
		v.Measured = min(v.Measured, domain.MaxLearnFor) + stands
	}
}

// valuesOf are the values of members that are of use at a moment.
func valuesOf(m Measurement, now time.Time) []float64 {
	if m.Why != "" || now.Sub(m.At) > domain.DefaultStaleAfter {
		return nil
	}
	values := make([]float64, 0, len(m.Members))
	for _, value := range m.Members {
		if value >= 0 && finite(value) {
			values = append(values, value)
		}
	}
	return values
}

// peak takes notice of the memory that a member had.
func (v *Vertical) peak(now time.Time, mib float64) {
	if v.Peak != nil && now.Sub(v.Peak.At) >= peakEvery {
		v.MemoryMiB.add(bucketOf(v.Peak.Value, leastMemoryMiB), 1)
		v.Peak = nil
	}
	if v.Peak == nil {
		v.Peak = &At[float64]{At: now}
	}
	v.Peak.Value = max(v.Peak.Value, min(mib, mostUsed))
}

// recommend returns what members should request, of the resources for which there are bounds.
func (v *Vertical) recommend(by domain.VerticalScaling, requested domain.Resources) []Recommended {
	var all []Recommended
	if by.CPUs != nil {
		all = append(all, v.recommended(by, *by.CPUs, resource{
			ResourceCPUs, requested.CPUs, &v.CPUs, leastCPUs, 0.01, " % of the time, members keep busy ",
		}))
	}
	if by.MemoryMiB != nil {
		peaks := histogram{v.MemoryMiB.First, append([]float32(nil), v.MemoryMiB.Weights...)}
		if v.Peak != nil {
			peaks.add(bucketOf(v.Peak.Value, leastMemoryMiB), 1)
		}
		all = append(all, v.recommended(by, *by.MemoryMiB, resource{
			ResourceMemoryMiB, float64(requested.MemoryMiB), &peaks, leastMemoryMiB, 1, " % of the days, the largest member has ",
		}))
	}
	return all
}

// resource is one that is scaled vertically: what is requested of it, what is known of its use, the end of the first
// bucket of that, the amount of which only multiples are recommended, and how its percentile is told.
type resource struct {
	name          string
	requested     float64
	used          *histogram
	least, within float64
	says          string
}

// recommended returns what members should request of one resource.
func (v *Vertical) recommended(by domain.VerticalScaling, bounds domain.AmountBounds, r resource) Recommended {
	rec := Recommended{Resource: r.name, Requested: r.requested, Why: "not measured yet"}
	at := func(share float64) (used, amount float64) {
		bucket, known := r.used.percentile(share)
		if !known {
			return 0, 0
		}
		used = bucketEnd(bucket, r.least)
		return used, math.Ceil(used*by.Margin()/r.within*(1-rounding)) * r.within
	}
	used, asked := at(by.Share())
	if used == 0 {
		return rec
	}
	within := func(amount float64) *float64 {
		amount = min(max(amount, bounds.Min), bounds.Max)
		return significant(amount)
	}
	_, below := at(min(shareBelow, by.Share()))
	_, above := at(max(shareAbove, by.Share()))
	rec.Target, rec.Lower, rec.Upper = within(asked), within(below), within(above)
	rec.Why = say(100*by.Share(), r.says, used, " or less; with ", 100*(by.Margin()-1), " % more that is ", asked)
	switch {
	case asked < bounds.Min:
		rec.Why += say(", which is below min, ", bounds.Min)
	case asked > bounds.Max:
		rec.Why += say(", which is above max, ", bounds.Max)
	}
	rec.Why += say("; measured for ", v.Measured.Truncate(time.Second))
	if v.Measured < by.Learns() {
		rec.Why += say(" of the ", by.Learns(), " that are learned from first")
	}
	return rec
}

// earlier is the earlier one of two moments.
func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// UnmarshalJSON reads what was stored. What no members use is forgotten: it would keep the policy from recommending
// anything, or from storing it.
func (v *Vertical) UnmarshalJSON(text []byte) error {
	type plain Vertical
	var stored plain
	if err := json.Unmarshal(text, &stored); err != nil {
		return err
	}
	if *v = Vertical(stored); !v.sound() {
		*v = Vertical{}
	}
	return nil
}

func (v *Vertical) sound() bool {
	return v.Measured >= 0 && v.Measured <= domain.MaxLearnFor+longestSample && v.CPUs.sound() && v.MemoryMiB.sound() &&
		(v.Peak == nil || v.Peak.Value >= 0 && v.Peak.Value <= mostUsed)
}
