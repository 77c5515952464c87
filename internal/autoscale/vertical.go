package autoscale

import (
	"encoding/json"
	"math"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Vertical is what is known of the usage of a role's members: some 3 KB of JSON.
//
// It is learned like in the recommender of Kubernetes' Vertical Pod Autoscaler
// (https://github.com/kubernetes/autoscaler/blob/master/vertical-pod-autoscaler/pkg/recommender): for CPUs, how much of
// the time members use how many; for memory, where too little kills a member, the peak of each day. What is a day old
// counts half. Unlike there, the peak is that of the member that uses the most, as all of them get the same size. A
// member that ran out of memory counts as if it had used more than its limit.
type Vertical struct {
	// At is when it was last updated, and Measured the total time over which members were measured.
	At       time.Time     `json:"at,omitzero"`
	Measured time.Duration `json:"measured,omitempty"`
	// CPUs are seconds by the number of CPUs that a member kept busy. MemoryMiB are days by their peaks, without the
	// present day.
	CPUs      histogram `json:"cpus,omitzero"`
	MemoryMiB histogram `json:"memory_mib,omitzero"`
	// Peak is the peak of the present day, and when that day began.
	Peak *At[float64] `json:"peak,omitempty"`
	// Killed is when the last member that is known to have run out of memory did so.
	Killed time.Time `json:"killed,omitzero"`
}

const (
	// verticalHalfLife is the age at which something counts half.
	verticalHalfLife = 24 * time.Hour
	// peakEvery is the time over which one peak is taken.
	peakEvery = 24 * time.Hour
	// longestSample limits the time that a measurement stands for.
	longestSample = 10 * time.Minute
	// The first buckets end at a hundredth of a CPU, and at 10 MiB.
	leastCPUs, leastMemoryMiB = 0.01, 10
	// What a member that ran out of memory is assumed to need: somewhat more than its limit.
	killedFactor, killedMiB = 1.2, 100
	// mostUsed bounds peaks so that nothing computed from them overflows. It is far beyond any host.
	mostUsed = 1e9
	// shareBelow and shareAbove are the percentiles between which any value is acceptable, whatever the target
	// percentile.
	shareBelow, shareAbove = 0.5, 0.95
)

// Used is what members use at the moment.
type Used struct {
	// CPUs are the CPUs that members keep busy, and MemoryMiB the most memory that they used recently.
	CPUs, MemoryMiB Measurement
	// Killed is the memory limit of the last member that exceeded it, and when; nil if none has.
	Killed *At[float64]
	// Requested is what a newly started member requests, Size the part of that which policies have set, and Sized when
	// they last did so.
	Requested, Size domain.Resources
	Sized           time.Time
	// InPlace is whether running members should have that size, too.
	InPlace bool
}

// Recommended is what a member of a role should request of a resource.
type Recommended struct {
	// Resource is ResourceCPUs or ResourceMemoryMiB. Requested is what a newly started member requests of it; 0 if
	// nothing.
	Resource  string
	Requested float64
	// Target is the recommended request, and any value between Lower and Upper is acceptable; all are within the
	// policy's bounds. They are nil if usage was never measured.
	Target, Lower, Upper *float64
	// Why is the reason, in words.
	Why string
}

// Resize is the new size of members started from now on.
type Resize struct {
	// To is what they request; zero means as declared.
	To domain.Resources
	// Why is the reason, in words.
	Why string
}

// tooNear is the fraction by which a recommendation may differ from the request without being applied, as in
// Kubernetes.
const tooNear = 0.1

// resize returns the new size of members; nil if it does not change. More memory after a member ran out of it does not
// wait until enough was learned, and neither does a size that new bounds exclude.
func (a *Autoscaler) resize(d *Decision, state *State, seen *Seen) *Resize {
	by, used := a.policy.Vertical, &seen.Used
	if by == nil || by.ApplyRule() == domain.ApplyNever {
		if used.Size == (domain.Resources{}) {
			return nil
		}
		return &Resize{Why: "the policy no longer applies recommendations"}
	}
	if a.policy.DryRun || a.policy.Paused == domain.PauseAll {
		return nil
	}
	to, why := domain.Resources{}, make([]string, 0, 2)
	for _, r := range d.Recommended {
		kept, bounds := used.Size.CPUs, by.CPUs
		if r.Resource == ResourceMemoryMiB {
			kept, bounds = float64(used.Size.MemoryMiB), by.MemoryMiB
		}
		within, outside := rebounded(r.Resource, kept, *bounds)
		switch {
		case r.Target != nil && r.Requested > 0 && math.Abs(*r.Target/r.Requested-1) > tooNear &&
			(state.Vertical.Measured >= by.Learns() || state.Vertical.urgent(r, used.Sized)):
			kept = *r.Target
			why = append(why, say(r.Resource, " ", r.Requested, " → ", kept, ": ", r.Why))
		case outside != "":
			why = append(why, say(r.Resource, " ", kept, " → ", within, ": ", outside))
			kept = within
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
		why = append(why, "apply has changed")
	case len(why) == 0:
		why = append(why, "the policy no longer manages a resource that it changed before")
	}
	return &Resize{to, strings.Join(why, "; ")}
}

// rebounded returns the amount of a resource that the policy has set earlier, 0 if none, within the present bounds, and
// why that differs; "" if it does not. The bounds are rounded as amounts are when they are set.
func rebounded(resource string, amount float64, bounds domain.AmountBounds) (within float64, outside string) {
	least, most := *significant(bounds.Min), *significant(bounds.Max)
	if resource == ResourceMemoryMiB {
		least, most = math.Ceil(least), math.Ceil(most)
	}
	switch {
	case amount > 0 && amount < least:
		return least, say(amount, " is below min (", bounds.Min, ")")
	case amount > most:
		return most, say(amount, " is above max (", bounds.Max, ")")
	}
	return amount, ""
}

// urgent reports whether a recommendation is for more memory after a member ran out of it since the size last changed.
func (v *Vertical) urgent(r Recommended, sized time.Time) bool {
	return r.Resource == ResourceMemoryMiB && *r.Target > r.Requested && v.Killed.After(sized)
}

// The resources that are scaled vertically.
const (
	ResourceCPUs      = "cpus"
	ResourceMemoryMiB = "memory_mib"
)

// recommend learns from what members use, and returns what they should request; nil if the policy leaves that alone.
func (a *Autoscaler) recommend(state *State, seen *Seen) []Recommended {
	if a.policy.Vertical == nil {
		state.Vertical = nil
		return nil
	}
	if state.Vertical == nil {
		state.Vertical = &Vertical{}
	}
	if k := seen.Used.Killed; k != nil && k.At.Before(state.Since) {
		seen.Used.Killed = nil // it ran out of what somebody else had chosen
	}
	state.Vertical.learn(seen.Now, a.policy.Every(), seen.Used)
	return state.Vertical.recommend(*a.policy.Vertical, seen.Used.Requested)
}

// learn adds what members use at a moment. It stands for the time since the last call or, the first time, for an
// interval.
func (v *Vertical) learn(now time.Time, every time.Duration, used Used) {
	elapsed := now.Sub(v.At)
	switch {
	case v.At.IsZero():
		elapsed = every
	case elapsed < 0: // a clock that was set back
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

// valuesOf returns the usable values of members at a moment.
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

// peak adds the memory usage of a member.
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

// recommend returns what members should request of the resources that have bounds.
func (v *Vertical) recommend(by domain.VerticalScaling, requested domain.Resources) []Recommended {
	var all []Recommended
	if by.CPUs != nil {
		all = append(all, v.recommended(by, *by.CPUs, resource{
			ResourceCPUs, requested.CPUs, &v.CPUs, leastCPUs, 0.01, " % of the time, members use at most ",
		}))
	}
	if by.MemoryMiB != nil {
		peaks := histogram{v.MemoryMiB.First, append([]float32(nil), v.MemoryMiB.Weights...)}
		if v.Peak != nil {
			peaks.add(bucketOf(v.Peak.Value, leastMemoryMiB), 1)
		}
		all = append(all, v.recommended(by, *by.MemoryMiB, resource{
			ResourceMemoryMiB, float64(requested.MemoryMiB), &peaks, leastMemoryMiB, 1,
			" % of the days, the largest member uses at most ",
		}))
	}
	return all
}

// resource is a vertically scaled resource: its present request, its known usage, the end of the usage's first bucket,
// the unit that recommendations are multiples of, and how its percentile is described.
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
	rec.Why = say(100*by.Share(), r.says, used, "; with a margin of ", 100*(by.Margin()-1), " %, that is ", asked)
	switch {
	case asked < bounds.Min:
		rec.Why += say(", which is below min (", bounds.Min, ")")
	case asked > bounds.Max:
		rec.Why += say(", which is above max (", bounds.Max, ")")
	}
	rec.Why += say("; measured for ", v.Measured.Truncate(time.Second))
	if v.Measured < by.Learns() {
		rec.Why += say(" of the ", by.Learns(), " required first")
	}
	return rec
}

// earlier returns the earlier of two times.
func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// UnmarshalJSON reads stored state. Impossible values are dropped, as they would prevent recommendations, or storing
// them.
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
