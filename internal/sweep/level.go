package sweep

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// level returns how many runs of a sweep a place takes; false if only the available room limits that.
func (q Queue) level() (most int, bounded bool) {
	found := Parallelism(q.Document, q.Parallelism)
	return found.Level, found.Of != "" && found.Unknown == ""
}

// vacancies returns how many more runs of a sweep each place takes by its level; nil if that is not limited.
func (d *decision) vacancies(s domain.Sweep) map[string]int {
	most, bounded := d.levels[s.Name]
	if !bounded {
		return nil
	}
	places := HostsFor(s, d.cluster)
	if s.GPUs != nil {
		places = devicesFor(s, d.cluster)
	}
	left := make(map[string]int, len(places))
	for place := range places {
		left[place] = most
	}
	for _, at := range d.occupied[s.Name].Assignments {
		taken := []string{at.Host}
		if s.GPUs != nil {
			taken = at.GPUs.UUIDs()
		}
		for _, place := range taken {
			if _, may := left[place]; may {
				left[place]--
			}
		}
	}
	return left
}

// full reports whether no place takes a further run by the sweep's level.
func full(vacancies map[string]int) bool {
	return len(vacancies) > 0 && slices.Max(slices.Collect(maps.Values(vacancies))) <= 0
}

// withoutFull removes the places that are full by the sweep's level from what it lacks, as it does not wait for those.
func (d *decision) withoutFull(s domain.Sweep, lacks shortage) shortage {
	left := d.vacancies(s)
	isFull := func(place string, _ bool) bool {
		n, bounded := left[place]
		return bounded && n <= 0
	}
	maps.DeleteFunc(lacks.devices, isFull)
	if s.GPUs == nil {
		maps.DeleteFunc(lacks.hosts, isFull)
	}
	return lacks
}

// ParallelismReason says in one sentence how many runs of a sweep a place takes, and why; "" for a sweep without
// progress.
func ParallelismReason(doc domain.SweepDocument, stored domain.SweepParallelism) string {
	f, place := Parallelism(doc, stored), "host"
	if doc.Spec.GPUs != nil {
		place = "GPU"
	}
	switch {
	case f.Of == "":
		return ""
	case f.Unknown != "":
		return "as many run as there is room for: " + f.Unknown
	case f.Best == 0:
		return fmt.Sprintf("%d at a time on a %s until its progress is measured", f.Level, place)
	}
	verb := "make"
	if f.Best == 1 {
		verb = "makes"
	}
	makes := fmt.Sprintf("%d %s %s steps a second", f.Best, verb, shortNumber(f.Throughput[f.Best]))
	if f.Over > 0 {
		makes += fmt.Sprintf(", and %d make %s", f.Over, shortNumber(f.Throughput[f.Over]))
	}
	switch {
	case f.Settled:
		return fmt.Sprintf("%d at a time on a %s is best: %s", f.Level, place, makes)
	case f.Level == f.Best:
		return fmt.Sprintf("measuring %d at a time on a %s again: %s", f.Level, place, makes)
	}
	return fmt.Sprintf("trying %d at a time on a %s: %s", f.Level, place, makes)
}

// shortNumber formats a number with four digits.
func shortNumber(n float64) string { return strconv.FormatFloat(n, 'g', 4, 64) }
