package placement

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// division divides the sites by their values of a label. A missing label counts as the empty value, as in Docker Swarm.
type division struct {
	// values are the sites' values as numbers, by site, and count is how many there are.
	values []int
	count  int
}

func divide(sites []site, label string) *division {
	d := &division{values: make([]int, len(sites))}
	numbers := map[string]int{}
	for i := range sites {
		value := sites[i].host.Labels[label]
		n, known := numbers[value]
		if !known {
			n = len(numbers)
			numbers[value] = n
		}
		d.values[i] = n
	}
	d.count = len(numbers)
	return d
}

// crew is a set of members that are spread together over a division: those of a role, or all runs.
type crew struct {
	role     string
	division *division
}

func (d *demand) crew() crew {
	if d.isRun {
		return crew{division: d.division}
	}
	return crew{d.role, d.division}
}

// tally returns the numbers of members of the role's crew by value.
func (l *layout) tally(d *demand) []int {
	tally, found := l.tallies[d.crew()]
	if !found {
		tally = make([]int, d.division.count)
		l.tallies[d.crew()] = tally
	}
	return tally
}

// enroll adds change to the count of members on a site.
func (l *layout) enroll(d *demand, at, change int) {
	if d.division != nil {
		l.tally(d)[d.division.values[at]] += change
	}
}

// preferEven orders sites by the number of members on all sites with the same value, fewest first.
func (l *layout) preferEven(d *demand) func(a, b int) int {
	tally, values := l.tally(d), d.division.values
	return func(a, b int) int { return cmp.Compare(tally[values[a]], tally[values[b]]) }
}

// CheckSpread returns problems for roles that are spread by a label that no host has. If hosts have lost it since it
// was accepted, that is only a warning, as members can still be placed, as after the loss of a host.
func CheckSpread(group, before domain.Group, hosts map[string]domain.Host) domain.Problems {
	var ps domain.Problems
	if len(hosts) == 0 {
		return nil // a problem of its own
	}
	labels := map[string]bool{}
	for _, host := range hosts {
		for label := range host.Labels {
			labels[label] = true
		}
	}
	for _, role := range group.RoleNames() {
		label := group.Roles[role].Placement.SpreadBy
		if label == "" || labels[label] {
			continue
		}
		there := "none"
		if len(labels) > 0 {
			there = strings.Join(slices.Sorted(maps.Keys(labels)), ", ")
		}
		ps.Add(domain.Path{"roles", domain.Key(role), "placement", "spread_by"}, "No host with this label",
			"no host of cluster %q has a label %q to spread members by; the labels of its hosts are: %s", group.Cluster,
			label, there)
		ps[len(ps)-1].Warning = before.Roles[role].Placement.SpreadBy == label
	}
	return ps
}
