package placement

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// explain says why not all members of a role have a host. The layout holds those of the role's members that fit and the
// roles placed before it, but none placed after it.
func explain(cluster string, d *demand, l *layout) domain.Problems {
	var ps domain.Problems
	usable, counts := 0, l.count(d)
	var taken []string
	for _, at := range d.allowed {
		s := &l.sites[at]
		if port, by, blocked := s.blocked(d.ports); blocked && counts[at] == 0 {
			taken = append(taken, fmt.Sprintf("host %s: %s by %s", s.name, port, by))
		} else if s.closed == "" || counts[at] > 0 {
			usable++
		}
	}
	switch placement := d.spec.Placement; {
	case len(d.allowed) == 0 && slices.ContainsFunc(l.sites, func(s site) bool { return s.allows(placement) }):
		ps = explainBeyond(d, l)
	case len(d.allowed) == 0:
		ps.Add(d.path("placement", "labels"), "No host with these labels",
			"role %q asks for hosts labelled %s, and cluster %q has none%s: %s; change the role's labels or "+
				"label a host",
			d.role, formatLabels(placement.Labels), cluster, among(placement.Hosts),
			list(l.named(placement.Hosts), func(s *site) string {
				return fmt.Sprintf("host %s: %s", s.name, formatLabels(s.host.Labels))
			}))
	case len(d.ports) > 0 && len(d.members) > usable:
		free := ""
		if len(taken) > 0 {
			free = fmt.Sprintf(", %d of which have it in use: %s", len(taken),
				list(taken, func(s *string) string { return *s }))
		}
		ps.Add(d.portsPath(), "Published port taken",
			"role %q has %s, each of which publishes %s on its host, and %s%s%s; set replicas to %d or less, publish "+
				"another port, or add hosts",
			d.role, count(len(d.members), "member"), strings.Join(d.ports, ", "), hostsOf(cluster, d), free,
			closedOf(l, d), usable)
	case d.strategy == domain.OnePerHost && len(d.members) > usable:
		ps.Add(d.path("placement", "strategy"), "Too few hosts",
			"role %q has %s, at most one per host, and %s (%s)%s; set replicas to %d or less, add hosts, or "+
				"choose %q or %q",
			d.role, count(len(d.members), "member"), hostsOf(cluster, d),
			list(l.allowed(d), func(s *site) string { return s.name }), closedOf(l, d), usable, domain.Spread,
			domain.Pack)
	case !slices.ContainsFunc(l.allowed(d), func(s site) bool { return s.closed == "" }):
		ps.Add(d.path("placement"), "No host takes new members",
			"role %q has %s, of which %d can stay where they are, and %s%s; bring one of them back, or let the "+
				"role use others",
			d.role, count(len(d.members), "member"), l.placed(d), hostsOf(cluster, d), closedOf(l, d))
	default:
		ps = explainCapacity(cluster, d, l)
	}
	return ps
}

func explainCapacity(cluster string, d *demand, l *layout) domain.Problems {
	var ps domain.Problems
	request := d.spec.Resources.Requests()
	sites := l.allowed(d)
	capacity := largest(sites)
	const tooLarge = "%s requests %s, and the largest of the hosts it may use has %s (%s); lower the request or add " +
		"a larger host"
	if request.CPUs > capacity.CPUs+cpuTolerance {
		ps.Add(d.path("resources", "cpus"), "Request beyond any host", tooLarge, d.each(), formatCPUs(request.CPUs),
			formatCPUs(capacity.CPUs),

			list(sites, func(s *site) string { return "host " + s.name + ": " + formatCPUs(s.host.Capacity.CPUs) }))
	}
	if request.MemoryMiB > capacity.MemoryMiB {
		ps.Add(d.path("resources", "memory_mib"), "Request beyond any host", tooLarge, d.each(),
			formatMemory(request.MemoryMiB), formatMemory(capacity.MemoryMiB),

			list(sites,
				func(s *site) string { return "host " + s.name + ": " + formatMemory(s.host.Capacity.MemoryMiB) }))
	}
	if len(ps) > 0 {
		return ps
	}

	counts := l.count(d)
	withoutCPUs, withoutMemory, withoutGPUs := 0, 0, 0
	for i, at := range d.allowed {
		if l.sites[at].closed == "" && !l.spent(d, at) {
			cpus, memory := sites[i].lacks(request)
			if cpus {
				withoutCPUs++
			}
			if memory {
				withoutMemory++
			}
			if !l.fleet.has(d.gpus, at, true) {
				withoutGPUs++
			}
		}
		if d.isRun {
			continue
		}
		// What the role's own members use is shown as free, as it is what they have to fit into.
		sites[i].used.CPUs -= float64(counts[at]) * request.CPUs
		sites[i].used.MemoryMiB -= int64(counts[at]) * request.MemoryMiB
	}
	if withoutGPUs > 0 && withoutGPUs >= max(withoutCPUs, withoutMemory) {
		return explainGPUs(cluster, d, l)
	}
	resource, summary := "cpus", "Not enough CPUs"
	if withoutMemory > withoutCPUs {
		resource, summary = "memory_mib", "Not enough memory"
	}
	if d.isRun {
		ps.Add(d.path("resources", resource), summary, "%s requests %s; %s%s", d.each(), formatRequest(request),
			list(sites, formatFree), closedOf(l, d))
		return ps
	}
	limit := ""
	if d.strategy == domain.OnePerHost {
		limit = ", at most one per host"
	}
	ps.Add(d.path("resources", resource), summary,
		"role %q has %s of %s each%s, and only %d of them fit; %s for this role: %s%s; lower the request or "+
			"replicas, or add capacity",
		d.role, count(len(d.members), "member"), formatRequest(request), limit, l.placed(d), hostsOf(cluster, d),
		list(sites, formatFree), closedOf(l, d))
	return ps
}

// hostsOf says how many hosts a role may use, and why not more.
func hostsOf(cluster string, d *demand) string {
	hosts := fmt.Sprintf("cluster %q has %s", cluster, count(len(d.allowed), "host"))
	if len(d.spec.Placement.Labels) > 0 {
		hosts += " labelled " + formatLabels(d.spec.Placement.Labels)
	}
	if d.gpus != nil {
		hosts += " with GPUs for them"
	}
	return hosts + among(d.spec.Placement.Hosts)
}

// among says which hosts a role names.
func among(hosts []string) string {
	if len(hosts) == 0 {
		return ""
	}
	return " among those in placement.hosts (" + strings.Join(hosts, ", ") + ")"
}

// closedOf says which of the allowed hosts take no new members, and why.
func closedOf(l *layout, d *demand) string {
	closed := slices.DeleteFunc(l.allowed(d), func(s site) bool { return s.closed == "" })
	if len(closed) == 0 {
		return ""
	}
	return fmt.Sprintf(", %d of which take no new members: %s", len(closed),
		list(closed, func(s *site) string { return s.closed }))
}

func formatFree(s *site) string {
	free, capacity := s.free(), s.host.Capacity
	text := fmt.Sprintf("host %s: %s of %s free", s.name, formatNumber(max(free.CPUs, 0)), formatCPUs(capacity.CPUs))
	if s.reserved.CPUs > 0 {
		text += fmt.Sprintf(", %s reserved by other services", formatNumber(s.reserved.CPUs))
	}
	text += fmt.Sprintf(", %d of %s free", max(free.MemoryMiB, 0), formatMemory(capacity.MemoryMiB))
	if s.reserved.MemoryMiB > 0 {
		text += fmt.Sprintf(", %d reserved by other services", s.reserved.MemoryMiB)
	}
	return text
}

func formatRequest(r domain.Resources) string {
	var parts []string
	if r.CPUs > 0 {
		parts = append(parts, formatCPUs(r.CPUs))
	}
	if r.MemoryMiB > 0 {
		parts = append(parts, formatMemory(r.MemoryMiB))
	}
	return strings.Join(parts, " and ")
}

func formatCPUs(n float64) string {
	if n == 1 {
		return "1 CPU"
	}
	return formatNumber(n) + " CPUs"
}

func formatMemory(mib int64) string { return strconv.FormatInt(mib, 10) + " MiB" }

// formatNumber formats up to three decimals, without the rounding noise of sums.
func formatNumber(n float64) string {
	return strconv.FormatFloat(math.Round(n*1000)/1000, 'f', -1, 64)
}

// formatLabels formats labels as in a Terraform configuration.
func formatLabels(labels map[string]string) string {
	if len(labels) == 0 {
		return "no labels"
	}
	pairs := make([]string, 0, len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, fmt.Sprintf("%s = %q", key, labels[key]))
	}
	return "{ " + strings.Join(pairs, ", ") + " }"
}

// list describes the first items, and counts the rest.
func list[T any](items []T, say func(*T) string) string {
	return listBy("; ", items, say)
}

// shorten joins the first texts, and counts the rest.
func shorten(texts []string, separator string) string {
	return listBy(separator, texts, func(s *string) string { return *s })
}

func listBy[T any](separator string, items []T, say func(*T) string) string {
	const shown = 5
	var parts []string
	for i := range items[:min(len(items), shown)] {
		parts = append(parts, say(&items[i]))
	}
	if len(items) > shown {
		parts = append(parts, fmt.Sprintf("and %d more", len(items)-shown))
	}
	return strings.Join(parts, separator)
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
