package explain

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/printable"
)

// unknown stands for unknown values.
const unknown = "–"

// write writes the reading as text: the decisions, newest last, followed by the present state, as the end stays visible
// on a terminal.
func (r reading) write(to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, e := range r.entries {
		r.entry(w, e)
	}
	if len(r.entries) == 0 {
		_, _ = fmt.Fprintf(w, "No decisions recorded%s.\n\n",
			map[bool]string{true: " yet", false: " in this period"}[r.last == nil])
	}
	r.now(w)
	return w.Flush()
}

// entry writes a decision: its time and what happened to the count, and below what asked for that and what prevented
// it.
func (r reading) entry(w io.Writer, e autoscale.Entry) {
	when := r.clock(e.At)
	if e.Decisions > 1 {
		when += " to " + r.clockOn(e.Until, e.At)
	}
	_, _ = fmt.Fprintf(w, "%s  %s\n", when, outcome(e))
	for _, m := range e.Metrics {
		value, age, asks := unknown, "", "asks for nothing"
		if m.Value != nil {
			value = autoscale.Number(*m.Value)
		}
		if m.Value != nil || m.Age > 0 {
			age = rounded(time.Duration(m.Age*float64(time.Second))).String() + " old"
		}
		if m.Count != nil {
			asks = "asks for " + strconv.Itoa(*m.Count)
		}
		_, _ = fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\n", printable.Line(m.Name), value, age, asks, printable.Line(m.Why))
	}
	for _, g := range e.Guards {
		value, why := unknown, printable.Line(g.Why)
		switch {
		case g.Value != nil:
			value = autoscale.Number(*g.Value)
		case g.Never:
			why = "warning: this guard has never had a value, so no member is removed: " + why
		}
		_, _ = fmt.Fprintf(w, "  guard %s\t%s\t\t\t%s\n", g.Name, value, why)
	}
	for _, v := range e.Vertical {
		_, _ = fmt.Fprintf(w, "  vertical %s\t%s\t\t%s\t%s\n", v.Name, amount(v.Requested), recommendation(v),
			printable.Line(v.Why))
	}
	if e.Resized != "" {
		_, _ = fmt.Fprintf(w, "  size: %s\n", printable.Line(e.Resized))
	}
	for _, why := range e.Changed {
		_, _ = fmt.Fprintf(w, "  limited: %s\n", printable.Line(why))
	}
	_, _ = fmt.Fprintln(w)
}

// recommendation says what a member should request of a resource, and the acceptable range.
func recommendation(v autoscale.EntryVertical) string {
	if v.Target == nil {
		return "recommends nothing"
	}
	return fmt.Sprintf("recommends %s (%s to %s)", amount(v.Target), amount(v.Lower), amount(v.Upper))
}

// amount formats an amount that may be unknown.
func amount(value *float64) string {
	if value == nil {
		return unknown
	}
	return autoscale.Number(*value)
}

// outcome says what happened to the count.
func outcome(e autoscale.Entry) string {
	change := fmt.Sprintf("%d → %d", e.From, e.To)
	if e.From == e.To {
		change = fmt.Sprintf("stays %d", e.From)
	}
	if e.Ready != e.From {
		change += fmt.Sprintf(" (%d ready)", e.Ready)
	}
	switch e.Outcome {
	case autoscale.OutcomeHeld:
		change += ", held"
	case autoscale.OutcomeFailed:
		change += ", failed"
	case autoscale.OutcomeDryRun:
		change += ", dry run"
	}
	if e.Decisions > 1 {
		change += fmt.Sprintf(", decided %d times", e.Decisions)
	}
	if e.Change != "" && !strings.Contains(e.OutcomeWhy, e.Change) {
		change += ", change " + printable.Line(e.Change)
	}
	if e.OutcomeWhy != "" {
		change += ": " + printable.Line(e.OutcomeWhy)
	}
	return change
}

// recordedWithin is after how long, at the latest, a decision that changed nothing is recorded.
const recordedWithin = 5 * time.Minute

// now writes what the policy may do at the moment.
func (r reading) now(w io.Writer) {
	line := func(name, format string, args ...any) {
		_, _ = fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	line("policy", "%s in cluster %s", r.key, r.cluster)
	count := unknown
	if r.count != nil {
		count = strconv.Itoa(*r.count)
	}
	if r.policy == nil {
		line("count", "%s; its policy no longer exists", count)
		return
	}
	p := r.policy.Spec
	line("count", "%s, of %d to %d", count, p.Min, p.Max)
	switch p.Paused {
	case domain.PauseAll:
		line("paused", "all: the count stays, even outside its bounds")
	case domain.PauseOut:
		line("paused", "out: no members are added")
	case domain.PauseIn:
		line("paused", "in: no members are removed")
	}
	if p.DryRun {
		line("dry run", "decisions are recorded, but not carried out")
	}
	for _, call := range r.hooks {
		line("hook", "%s", printable.Line(r.hook(call)))
	}
	switch {
	case r.policy.Ending:
		line("next", "no decision: the policy is being destroyed")
	case r.last == nil:
		line("next", "the first decision, once the controller has read the policy")
	case r.at.Sub(r.last.Until) > recordedWithin+2*p.Every():
		line("next", "a decision is overdue, at %s intervals since %s: is the controller running?", p.Every(),
			r.clock(r.last.Until))
	default:
		next := r.last.Until.Add(p.Every())
		if late := r.at.Sub(next); late > 0 { // decided meanwhile, but not recorded yet
			next = next.Add(late.Truncate(p.Every()) + p.Every())
		}
		line("next", "a decision at %s, in %s, and then every %s", r.clockOn(next, r.at),
			max(next.Sub(r.at).Round(time.Second), 0), p.Every())
	}
}

// hook describes the state of a hook, and its deadline.
func (r reading) hook(call domain.HookCall) string {
	state := strings.TrimPrefix(call.String(), "hook ")
	if hook := r.policy.Spec.Hooks.At(call.Moment); hook != nil && call.AtWork() {
		state += fmt.Sprintf("; since %s, until %s at the latest", r.clockOn(call.Called, r.at),
			r.clockOn(call.Called.Add(hook.Limit()), r.at))
	}
	return state
}

// clock formats a time as local clocks show it.
func (r reading) clock(t time.Time) string { return t.In(r.at.Location()).Format(time.DateTime) }

// clockOn formats a time, without its date if that is the same as day's.
func (r reading) clockOn(t, day time.Time) string {
	const date = len(time.DateOnly)
	if shown := r.clock(t); shown[:date] != r.clock(day)[:date] {
		return shown
	}
	return r.clock(t)[date+1:]
}

// rounded rounds an age for people.
func rounded(age time.Duration) time.Duration {
	if age < 10*time.Second {
		return age.Round(100 * time.Millisecond)
	}
	return age.Round(time.Second)
}
