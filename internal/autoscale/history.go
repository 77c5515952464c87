package autoscale

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Entry is what a policy decided, once or several times in a row.
type Entry struct {
	// Policy is the key of the policy, <group>/<role>.
	Policy string `json:"policy"`
	// At and Until are the times of the first and of the last decision that it stands for, and Decisions is how many
	// those are. All else is of the last one.
	At        time.Time `json:"at"`
	Until     time.Time `json:"until"`
	Decisions int       `json:"decisions"`
	// From is the count that there was, and To the one that was decided on, of which Outcome tells what came.
	From int `json:"from"`
	To   int `json:"to"`
	// Ready is how many members did their work.
	Ready int `json:"ready"`
	// Metrics are what the metrics and schedules asked for.
	Metrics []EntryMetric `json:"metrics,omitempty"`
	// Guards are what the guards that ask sources were told.
	Guards []EntryGuard `json:"guards,omitempty"`
	// Vertical is what members should request, of the resources that the policy scales vertically.
	Vertical []EntryVertical `json:"vertical,omitempty"`
	// Resized says in words what came of having members that are started request something else; "" where nothing was
	// to be moved.
	Resized string `json:"resized,omitempty"`
	// Changed say in words which guards and bounds changed what was asked for.
	Changed []string `json:"changed,omitempty"`
	Outcome Outcome  `json:"outcome"`
	// OutcomeWhy says in words what came of the decision, where there is more to say.
	OutcomeWhy string `json:"outcome_why,omitempty"`
	// Change is the ID of the change that hooks of the user's were told of.
	Change string `json:"change,omitempty"`
}

// EntryMetric is what a metric or a schedule asked for.
type EntryMetric struct {
	Name string `json:"name"`
	// Value is the metric's; nil where there is none that was of use, and for schedules.
	Value *float64 `json:"value,omitempty"`
	// Age is how many seconds old it was, or that of one which was too old.
	Age float64 `json:"age_seconds,omitempty"`
	// Count is what was asked for; nil where nothing was.
	Count *int `json:"count,omitempty"`
	// Why says in words why.
	Why string `json:"why,omitempty"`
}

// EntryGuard is what a guard was told by its source.
type EntryGuard struct {
	Name string `json:"name"`
	// Value is nil where there was none that was of use, and Why says why.
	Value *float64 `json:"value,omitempty"`
	Why   string   `json:"why,omitempty"`
	// Never tells that it has never had one.
	Never bool `json:"never,omitempty"`
}

// EntryVertical is what a member should request of a resource.
type EntryVertical struct {
	// Name is ResourceCPUs or ResourceMemoryMiB, and Requested what a member requests of it that is started now; nil
	// where that is nothing.
	Name      string   `json:"name"`
	Requested *float64 `json:"requested,omitempty"`
	// Target, Lower and Upper are as in [Recommended], and Why says why.
	Target *float64 `json:"target,omitempty"`
	Lower  *float64 `json:"lower,omitempty"`
	Upper  *float64 `json:"upper,omitempty"`
	Why    string   `json:"why,omitempty"`
}

// Outcome is what came of a decision.
type Outcome string

// What may come of a decision.
const (
	// OutcomeUnchanged is of a decision for the count that there was.
	OutcomeUnchanged Outcome = "unchanged"
	// OutcomeDone is of one that was carried out, OutcomeHeld of one that something stood against, and OutcomeFailed of
	// one that was tried in vain.
	OutcomeDone   Outcome = "done"
	OutcomeHeld   Outcome = "held"
	OutcomeFailed Outcome = "failed"
	// OutcomeDryRun is of one that would have been carried out.
	OutcomeDryRun Outcome = "dry_run"
)

// NewEntry returns the entry of one decision of a policy, which is carried out if it is for another count.
func NewEntry(policy string, at time.Time, ready int, d Decision) Entry {
	e := Entry{Policy: policy, At: at, Until: at, Decisions: 1, From: d.From, To: d.To, Ready: ready, Changed: d.Limits(), Outcome: OutcomeUnchanged}
	if d.To != d.From {
		e.Outcome = OutcomeDone
	}
	for _, asked := range d.Asked {
		m := EntryMetric{Name: asked.Name, Age: asked.Age.Seconds(), Why: asked.Why}
		if finite(asked.Value) {
			m.Value = &asked.Value
		}
		if asked.Known && !asked.Abstains {
			m.Count = &asked.Count
		}
		e.Metrics = append(e.Metrics, m)
	}
	for _, g := range d.Guards {
		e.Guards = append(e.Guards, EntryGuard{g.Name, g.Value, g.Why, !g.NeverSince.IsZero()})
	}
	for _, r := range d.Recommended {
		v := EntryVertical{Name: r.Resource, Target: r.Target, Lower: r.Lower, Upper: r.Upper, Why: r.Why}
		if r.Requested > 0 {
			v.Requested = significant(r.Requested)
		}
		e.Vertical = append(e.Vertical, v)
	}
	return e
}

// Why says in words why the decision is as it is, as [Decision.Why] does.
func (e Entry) Why() string {
	reasons := make([]string, 0, len(e.Metrics))
	for _, m := range e.Metrics {
		reasons = append(reasons, reason(m.Name, m.Why))
	}
	return sentence(reasons, e.Changed)
}

// JSON returns the entry as a line of JSON, with its reason.
func (e Entry) JSON() ([]byte, error) {
	line, err := json.Marshal(struct {
		Entry
		Why string `json:"why"`
	}{e, e.Why()})
	return append(line, '\n'), err
}

// Key returns the group and the role of the policy.
func (e Entry) Key() (group, role string) {
	group, role, _ = strings.Cut(e.Policy, "/")
	return group, role
}

// longestGap is how far apart two decisions of one entry may be. A controller that was away for longer left a gap that
// is to be seen.
const longestGap = 10 * time.Minute

// continues reports whether the entry says the same as the one before it of the same policy, but for numbers: both left
// the count as it was, all metrics asked for the same, and those that asked for nothing, and what stood against what
// was asked for, did so for the same reasons.
func (e *Entry) continues(before *Entry) bool {
	return !e.Scaled() && !before.Scaled() && sameReason(e.Resized, before.Resized) &&
		e.From == before.From && e.To == before.To && e.Outcome == before.Outcome && e.Change == before.Change && e.At.Sub(before.Until) <= longestGap &&
		sameReason(e.OutcomeWhy, before.OutcomeWhy) && slices.EqualFunc(e.Changed, before.Changed, sameReason) &&
		slices.EqualFunc(e.Guards, before.Guards, func(a, b EntryGuard) bool {
			return a.Name == b.Name && a.Never == b.Never && (a.Value == nil) == (b.Value == nil) && sameReason(a.Why, b.Why)
		}) &&
		slices.EqualFunc(e.Vertical, before.Vertical, func(a, b EntryVertical) bool {
			return a.Name == b.Name && equal(a.Requested, b.Requested) && (a.Target == nil) == (b.Target == nil)
		}) &&
		slices.EqualFunc(e.Metrics, before.Metrics, func(a, b EntryMetric) bool {
			if a.Count == nil || b.Count == nil {
				return a.Name == b.Name && a.Count == b.Count && sameReason(a.Why, b.Why)
			}
			return a.Name == b.Name && *a.Count == *b.Count
		})
}

// equal reports whether two numbers that may be missing are the same.
func equal(a, b *float64) bool { return a == b || a != nil && b != nil && *a == *b }

// sameReason reports whether two texts have the same words, where those with a digit, such as numbers, times and the
// names of members, are all the same.
func sameReason(a, b string) bool {
	for a != b {
		var word, other string
		word, a, _ = strings.Cut(a, " ")
		other, b, _ = strings.Cut(b, " ")
		const digits = "0123456789"
		if word != other && (!strings.ContainsAny(word, digits) || !strings.ContainsAny(other, digits)) {
			return false
		}
	}
	return true
}

// Scaled reports whether the count was changed.
func (e Entry) Scaled() bool { return e.From != e.To && e.Outcome == OutcomeDone }

// longestText is how many bytes of a text are kept: programs of the user's may write more for a reason.
const longestText = 500

// tidy has the entry be what is read back from where it was stored: with no more than is of use to a person.
func (e *Entry) tidy() {
	e.At, e.Until = e.At.UTC().Truncate(time.Millisecond), e.Until.UTC().Truncate(time.Millisecond)
	e.OutcomeWhy, e.Resized = shortened(e.OutcomeWhy), shortened(e.Resized)
	metrics := make([]EntryMetric, 0, len(e.Metrics))
	for _, m := range e.Metrics {
		m.Name, m.Why = shortened(m.Name), shortened(m.Why)
		m.Age = math.Round(m.Age*1000) / 1000
		if m.Value != nil {
			m.Value = significant(*m.Value)
		}
		metrics = append(metrics, m)
	}
	e.Metrics = none(metrics)
	guards := make([]EntryGuard, 0, len(e.Guards))
	for _, g := range e.Guards {
		g.Why = shortened(g.Why)
		if g.Value != nil {
			g.Value = significant(*g.Value)
		}
		guards = append(guards, g)
	}
	e.Guards = none(guards)
	vertical := make([]EntryVertical, 0, len(e.Vertical))
	for _, v := range e.Vertical {
		v.Why = shortened(v.Why)
		for _, amount := range []**float64{&v.Requested, &v.Target, &v.Lower, &v.Upper} {
			if *amount != nil {
				*amount = significant(**amount)
			}
		}
		vertical = append(vertical, v)
	}
	e.Vertical = none(vertical)
	changed := make([]string, 0, len(e.Changed))
	for _, why := range e.Changed {
		changed = append(changed, shortened(why))
	}
	e.Changed = none(changed)
}

// none returns nil for a list without elements.
func none[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}

// shortened returns a text that is not too long, and that JSON can hold.
func shortened(text string) string {
	const more = "…"
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= longestText {
		return text
	}
	end := longestText - len(more)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + more
}

// significant returns a value with its first seven digits; nil where it is none.
func significant(value float64) *float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(value, 'g', 7, 64), 64)
	if err != nil || !finite(rounded) {
		return nil
	}
	return &rounded
}

// The bounds of what is kept of a policy.
const (
	KeepHistory = 30 * 24 * time.Hour
	KeepEntries = 10_000
)

// History is what policies decided. Its zero value is empty.
type History struct {
	entries []Entry // of each policy in their order
	last    map[string]int
}

// Add adds the next entry of a policy, or adds it to the one before, where it says the same.
func (h *History) Add(e Entry) {
	e.tidy()
	at, known := h.last[e.Policy]
	if !known || !e.continues(&h.entries[at]) {
		if h.last == nil {
			h.last = map[string]int{}
		}
		h.last[e.Policy] = len(h.entries)
		h.entries = append(h.entries, e)
		return
	}
	before := &h.entries[at]
	e.At, e.Decisions = before.At, before.Decisions+e.Decisions
	if e.Until.Before(before.Until) { // a clock that was put back
		e.Until = before.Until
	}
	*before = e
}

// All returns all entries, those of each policy in their order.
func (h *History) All() []Entry { return h.entries }

// Selection says which entries somebody wants to see.
type Selection struct {
	// Group and Role are those of the policies; all where they are empty.
	Group, Role string
	// Since leaves out what ended before; nothing where it is zero.
	Since time.Time
	// OnlyChanges leaves out decisions for the count that there was.
	OnlyChanges bool
	// Limit is how many entries there are at most, the newest; 0 sets no bound.
	Limit int
}

// Covers reports whether the selection includes the entries of a policy.
func (s Selection) Covers(policy string) bool {
	group, role := Entry{Policy: policy}.Key()
	return (s.Group == "" || s.Group == group) && (s.Role == "" || s.Role == role)
}

// Entries returns the entries that are wanted, the newest last, within the bounds of what is kept.
func (h *History) Entries(now time.Time, s Selection) []Entry {
	since := now.Add(-KeepHistory)
	if s.Since.After(since) {
		since = s.Since
	}
	kept := map[string]int{}
	var wanted []Entry
	for _, e := range slices.Backward(h.entries) {
		kept[e.Policy]++
		if kept[e.Policy] <= KeepEntries && s.Covers(e.Policy) && !e.Until.Before(since) && (!s.OnlyChanges || e.From != e.To || e.Resized != "") {
			wanted = append(wanted, e)
		}
	}
	slices.Reverse(wanted)
	slices.SortStableFunc(wanted, func(a, b Entry) int { return cmp.Or(a.Until.Compare(b.Until), a.At.Compare(b.At)) })
	if s.Limit > 0 && len(wanted) > s.Limit {
		wanted = wanted[len(wanted)-s.Limit:]
	}
	return wanted
}
