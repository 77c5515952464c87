//go:build linux

package main

import "fmt"

const (
	// cardEarlier and cardLonger limit the mean time to a result and the makespan with eight at a time, as ratios to
	// those with 37.
	cardEarlier = 0.80
	cardLonger  = 1.10
)

// cardTables show how the runs went in each way, by way and run.
func cardTables(courses [][]cardCourse) []fmt.Stringer {
	m := &markdown{
		title: fmt.Sprintf("%d experiments, requested at once on one card", cardRuns),
		table: table{head: []string{
			"at a time", "most", "finished", "out of memory", "makespan", "ratio", "mean time to a result", "ratio",
			"published: makespan", "ratio", "mean", "ratio", "",
		}},
	}
	wide := cardWays[cardWidest]
	held, all := true, true
	for i, way := range cardWays {
		var most, finished, ranOut, makespan, mean, longer, earlier []float64
		for run, c := range courses[i] {
			base := courses[cardWidest][run]
			most, finished = append(most, float64(c.most)), append(finished, float64(c.finished))
			ranOut = append(ranOut, float64(c.ranOut))
			makespan, mean = append(makespan, c.makespan.Seconds()), append(mean, c.mean.Seconds())
			longer = append(longer, ratioOf(c.makespan, base.makespan))
			earlier = append(earlier, ratioOf(c.mean, base.mean))
			all = all && c.finished == cardRuns
		}
		if i == 0 {
			held = middle(longer) <= cardLonger && middle(earlier) <= cardEarlier
		}
		m.add(way.name, spreadOf(most, "%.0f"), spreadOf(finished, "%.0f"), spreadOf(ranOut, "%.0f"),
			spreadOf(makespan, "%.0f s"), spreadOf(longer, "%.2f"), spreadOf(mean, "%.0f s"), spreadOf(earlier, "%.2f"),
			published(way.makespan, "%.0f s"), published(way.makespan/wide.makespan, "%.2f"),
			published(way.mean, "%.0f s"), published(way.mean/wide.mean, "%.2f"), way.published)
	}
	sections := []fmt.Stringer{
		m,
		note(fmt.Sprintf("Half of them learn with a table, half with a network, with a limit of %g processors each. A "+
			"fake driver's card has %s MiB,\n  of which they can allocate %s; each allocates %s. They learn, and time "+
			"counts, once as many have started as run\n  at a time, with progress from the first. Ratios are to 37 "+
			"slots in the same run; medians of %d runs (least – most).\n  The published seconds are computed from the "+
			"paper's medians for 1 to 37 at a time.",
			cardCPUs, count(cardMiB), count(allocatableMiB), count(cardRunMiB), len(courses[0]))),
	}
	for i, way := range cardWays {
		for _, c := range courses[i] {
			if c.best > 0 {
				sections = append(sections, note(fmt.Sprintf("%s found %d at a time, and %s.", way.name, c.best,
					yes(c.settled, "settled", "was still searching at the end"))))
			}
		}
	}
	return append(sections, note(fmt.Sprintf("Bars: %d of %d finish in each way: %s; with 8 at a time, the mean is at "+
		"most %.2f, and the makespan %.2f,\n  of those with 37: %s.", cardRuns, cardRuns,
		verdict(all), cardEarlier, cardLonger, verdict(held))))
}

// published formats a figure, or nothing for 0.
func published(value float64, format string) string {
	if value == 0 {
		return ""
	}
	return fmt.Sprintf(format, value)
}
