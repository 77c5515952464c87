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
	// At and Until are the times of the first and last decision of the entry, and Decisions how many there are.
	// Everything else is from the last one.
	At        time.Time `json:"at"`
	Until     time.Time `json:"until"`
	Decisions int       `json:"decisions"`
	// From is the count before and To the decided count; Outcome says what happened.
	From int `json:"from"`
	To   int `json:"to"`
	// Ready is how many members were working.
	Ready int `json:"ready"`
	// Metrics are what the metrics and schedules asked for.
	Metrics []EntryMetric `json:"metrics,omitempty"`
	// Guards are the values of the guards that ask sources.
	Guards []EntryGuard `json:"guards,omitempty"`
	// Vertical is what members should request of the resources that the policy scales vertically.
	Vertical []EntryVertical `json:"vertical,omitempty"`
	// Resized says what happened when the request of newly started members was to change; "" if it was not.
	Resized string `json:"resized,omitempty"`
	// Changed says which guards and bounds changed what was asked for.
	Changed []string `json:"changed,omitempty"`
	Outcome Outcome  `json:"outcome"`
	// OutcomeWhy adds details to Outcome, if there are any.
	OutcomeWhy string `json:"outcome_why,omitempty"`
	// Change is the ID of the change that the user's hooks were called for.
	Change string `json:"change,omitempty"`
}

// EntryMetric is what a metric or a schedule asked for.
type EntryMetric struct {
	Name string `json:"name"`
	// Value is the metric's; nil if there was no usable one, and for schedules.
	Value *float64 `json:"value,omitempty"`
	// Age is the age in seconds of the value, or of one that was too old.
	Age float64 `json:"age_seconds,omitempty"`
	// Count is what was asked for; nil if nothing was.
	Count *int `json:"count,omitempty"`
	// Why is the reason, in words.
	Why string `json:"why,omitempty"`
}

// EntryGuard is the value of a guard's source.
type EntryGuard struct {
	Name string `json:"name"`
	// Value is nil if there was no usable one, and Why says why.
	Value *float64 `json:"value,omitempty"`
	Why   string   `json:"why,omitempty"`
	// Never means that it has never had one.
	Never bool `json:"never,omitempty"`
}

// EntryVertical is what a member should request of a resource.
type EntryVertical struct {
	// Name is ResourceCPUs or ResourceMemoryMiB. Requested is what a newly started member requests of it; nil if
	// nothing.
	Name      string   `json:"name"`
	Requested *float64 `json:"requested,omitempty"`
	// Target, Lower and Upper are as in [Recommended], and Why is the reason.
	Target *float64 `json:"target,omitempty"`
	Lower  *float64 `json:"lower,omitempty"`
	Upper  *float64 `json:"upper,omitempty"`
	Why    string   `json:"why,omitempty"`
}

// Outcome is what happened after a decision.
type Outcome string

// What can happen after a decision.
const (
	// OutcomeUnchanged: the decision was to keep the count.
	OutcomeUnchanged Outcome = "unchanged"
	// OutcomeDone: carried out. OutcomeHeld: something prevented it. OutcomeFailed: tried, and failed.
	OutcomeDone   Outcome = "done"
	OutcomeHeld   Outcome = "held"
	OutcomeFailed Outcome = "failed"
	// OutcomeDryRun: would have been carried out.
	OutcomeDryRun Outcome = "dry_run"
)

// NewEntry returns the entry of one decision of a policy. It assumes that a new count is carried out.
func NewEntry(policy string, at time.Time, ready int, d Decision) Entry {
	e := Entry{
		Policy: policy, At: at, Until: at, Decisions: 1, From: d.From, To: d.To, Ready: ready, Changed: d.Limits(),
		Outcome: OutcomeUnchanged,
	}
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

// Why explains the decision, as [Decision.Why] does.
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

// longestGap is the maximum time between two decisions of one entry. If the controller was away for longer, the gap has
// to be visible.
const longestGap = 10 * time.Minute

// continues reports whether the entry says the same as the policy's entry before it, except for numbers: both left the
// count as it was, all metrics asked for the same, and the reasons for what asked for nothing or was prevented are the
// same.
func (e *Entry) continues(before *Entry) bool {
	return !e.Scaled() && !before.Scaled() && sameReason(e.Resized, before.Resized) &&
		e.From == before.From && e.To == before.To && e.Outcome == before.Outcome && e.Change == before.Change &&
		e.At.Sub(before.Until) <= longestGap &&
		sameReason(e.OutcomeWhy, before.OutcomeWhy) && slices.EqualFunc(e.Changed, before.Changed, sameReason) &&
		slices.EqualFunc(e.Guards, before.Guards, func(a, b EntryGuard) bool {
			return a.Name == b.Name && a.Never == b.Never && (a.Value == nil) == (b.Value == nil) &&
				sameReason(a.Why, b.Why)
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

// equal reports whether two optional numbers are the same.
func equal(a, b *float64) bool { return a == b || a != nil && b != nil && *a == *b }

// sameReason reports whether two texts have the same words. Words with a digit, such as numbers, times and names of
// members, all count as the same.
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

// longestText is how many bytes of a text are kept. A user's program may give a longer reason.
const longestText = 500

// tidy reduces the entry to what is stored and read back, with no more detail than is useful to people.
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

// shortened returns a text that is not too long and is valid UTF-8.
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

// significant returns a value rounded to seven digits; nil if it is not finite.
func significant(value float64) *float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(value, 'g', 7, 64), 64)
	if err != nil || !finite(rounded) {
		return nil
	}
	return &rounded
}

// Limits of what is kept for each policy.
const (
	KeepHistory = 30 * 24 * time.Hour
	KeepEntries = 10_000
)

// History is what policies decided. Its zero value is empty.
type History struct {
	entries []Entry // those of each policy in order
	last    map[string]int
}

// Add adds the next entry of a policy, or merges it into the one before if it says the same.
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
	if e.Until.Before(before.Until) { // a clock that was set back
		e.Until = before.Until
	}
	*before = e
}

// All returns all entries, those of each policy in order.
func (h *History) All() []Entry { return h.entries }

// Selection says which entries to return.
type Selection struct {
	// Group and Role select policies; empty means all.
	Group, Role string
	// Since omits what ended before; zero means nothing.
	Since time.Time
	// OnlyChanges omits decisions that keep the count.
	OnlyChanges bool
	// Limit is the maximum number of entries, the newest; 0 means no limit.
	Limit int
}

// Covers reports whether the selection includes the entries of a policy.
func (s Selection) Covers(policy string) bool {
	group, role := Entry{Policy: policy}.Key()
	return (s.Group == "" || s.Group == group) && (s.Role == "" || s.Role == role)
}

// Entries returns the selected entries, newest last, within the limits of what is kept.
func (h *History) Entries(now time.Time, s Selection) []Entry {
	since := now.Add(-KeepHistory)
	if s.Since.After(since) {
		since = s.Since
	}
	kept := map[string]int{}
	var wanted []Entry
	for _, e := range slices.Backward(h.entries) {
		kept[e.Policy]++
		if kept[e.Policy] <= KeepEntries && s.Covers(e.Policy) && !e.Until.Before(since) &&
			(!s.OnlyChanges || e.From != e.To || e.Resized != "") {
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
