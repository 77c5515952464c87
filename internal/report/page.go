package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// page is what the template shows, as text, in the template's order.
type page struct {
	Cluster, Engine string
	At              string
	Figures         []figure
	Notes           []string
	Hosts           []host
	Groups          []group
	Policies        []policy
	Sweeps          []sweepTable
}

// tone is how prominent something is; it is a class of the style sheet.
type tone string

const (
	plain   tone = ""
	good    tone = "good"
	warning tone = "warning"
	bad     tone = "bad"
	faint   tone = "faint"
)

// figure is a number at the top of the page.
type figure struct {
	Value, Label string
	Tone         tone
}

// policy is an autoscaling policy, as "autoscale explain" shows it.
type policy struct{ Key, Count, Text string }

// meter is the used part of a total. Percent is nil if either is unknown.
type meter struct {
	Text    string
	Percent *int
	Tone    tone
}

// unknown is shown in place of an unknown value.
const unknown = "–"

// page converts the reading to the page.
func (r reading) page() page {
	p := page{
		Cluster: r.name, Engine: r.Cluster.Engine, At: r.At.Format("Monday, 2 January 2006, 15:04:05 MST"),
		Notes: r.Notes(),
	}
	owners := r.owners()
	for _, name := range slices.Sorted(maps.Keys(r.Cluster.Hosts)) {
		p.Hosts = append(p.Hosts, r.host(name, owners))
	}
	p.Groups = r.groupTables()
	for _, key := range slices.Sorted(maps.Keys(r.Policies)) {
		p.Policies = append(p.Policies, policy{Key: key, Count: r.count(r.Policies[key].Spec), Text: r.policies[key]})
	}
	for _, name := range slices.Sorted(maps.Keys(r.sweeps.Found)) {
		p.Sweeps = append(p.Sweeps, r.sweepTable(name))
	}
	p.Figures = r.figures(p)
	return p
}

// count returns a role's count with the bounds of its policy, such as "4 of 2–8".
func (r reading) count(p domain.AutoscalingPolicy) string {
	count := unknown
	if n, known := r.Groups[p.Group].Counts[p.Role]; known {
		count = fmt.Sprint(n)
	}
	return fmt.Sprintf("%s of %d–%d", count, p.Min, p.Max)
}

// figures are the numbers at the top of the page.
func (r reading) figures(p page) []figure {
	answering, gpus, allocated, troubled := 0, 0, 0, 0
	for _, h := range p.Hosts {
		if h.Reason == "" {
			answering++
		}
		gpus += len(h.GPUs)
		for _, g := range h.GPUs {
			if len(g.Owners) > 0 {
				allocated++
			}
			if g.Trouble != "" {
				troubled++
			}
		}
	}
	figures := []figure{of(answering, len(p.Hosts), "hosts answer", bad)}
	if gpus > 0 {
		figures = append(figures, figure{fmt.Sprintf("%d of %d", allocated, gpus), "GPUs allocated", plain})
	}
	if troubled > 0 {
		figures = append(figures, figure{fmt.Sprint(troubled), "GPUs in trouble", bad})
	}
	phases := map[domain.Phase]int{}
	for _, g := range r.progress {
		phases[g.Phase]++
	}
	for _, phase := range []domain.Phase{
		domain.PhaseRunning, domain.PhasePending, domain.PhaseDegraded, domain.PhaseFailed, domain.PhaseCompleted,
	} {
		if n := phases[phase]; n > 0 {
			figures = append(figures,
				figure{fmt.Sprint(n), plural(n, "group") + " " + string(phase), toneOfPhase[phase]})
		}
	}
	if n := len(p.Sweeps); n > 0 {
		figures = append(figures, figure{fmt.Sprint(n), plural(n, "sweep"), plain})
	}
	return figures
}

// of is a figure such as "3 of 4 hosts answer"; it has the tone otherwise if some are missing.
func of(n, all int, label string, otherwise tone) figure {
	f := figure{fmt.Sprintf("%d of %d", n, all), label, good}
	if n < all {
		f.Tone = otherwise
	}
	return f
}

func plural(n int, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

// meterOf is a meter of part in total. format formats the amounts, show combines them.
func meterOf(part *float64, total float64, show func(part, total string) string, format func(float64) string) meter {
	m := meter{Text: unknown}
	if total > 0 {
		m.Text = show(unknown, format(total))
	}
	if part == nil || total <= 0 {
		return m
	}
	m.Text = show(format(*part), format(total))
	m.Percent = new(int(math.Round(min(max(100**part/total, 0), 100))))
	return m
}

// memoryMeter is a meter of used memory or disk, in MiB. It is a warning if little is left.
func memoryMeter(used *float64, total int64) meter {
	m := meterOf(used, float64(total), ofTotal, gibibytes)
	if m.Percent != nil && *m.Percent >= tight {
		m.Tone = warning
	}
	return m
}

// tight is the percentage of memory or disk from which a meter is a warning.
const tight = 90

func ofTotal(part, total string) string { return part + " of " + total }

// gibibytes formats an amount given in MiB.
func gibibytes(mib float64) string {
	switch {
	case mib >= 1<<20:
		return fmt.Sprintf("%.1f TiB", mib/(1<<20))
	case mib >= 100<<10:
		return fmt.Sprintf("%.0f GiB", mib/1024)
	case mib >= 1024:
		return fmt.Sprintf("%.1f GiB", mib/1024)
	}
	return fmt.Sprintf("%.0f MiB", mib)
}

// number formats a value; nil is unknown.
func number(format string, value *float64) string {
	if value == nil {
		return unknown
	}
	return fmt.Sprintf(format, *value)
}

// memory formats an amount in MiB; nil is unknown.
func memory(mib *float64) string {
	if mib == nil {
		return unknown
	}
	return gibibytes(*mib)
}

// ago formats the time from then to now in one unit.
func ago(then, now time.Time) string {
	d := now.Sub(then)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", max(d.Seconds(), 0))
	case d < time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	case d < 48*time.Hour:
		return fmt.Sprintf("%.1f h", d.Hours())
	}
	return fmt.Sprintf("%.0f days", d.Hours()/24)
}
