package top

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/overview"
)

// state is what is known of a cluster: the last reading, and why it could not be read since.
type state struct {
	cluster, engine string
	// reading is the last successful one. Its time is zero before that.
	reading overview.Reading
	// err is why the last read failed; nil if it did not.
	err error
	// filter is what rows have to contain to be shown, in upper or lower case; all are if it is empty.
	filter string
	// query is what the tab shows, and sweeps and log were last read for it; sweeps is nil before that.
	query  query
	sweeps *overview.Sweeps
	log    memberLog
}

// frame is what is shown at one moment.
type frame struct {
	// head is fixed, and body is scrolled.
	head, body []line
}

// sorting is what hosts, GPUs and the members of a group are sorted by.
type sorting int

const (
	byName sorting = iota
	byCPU
	byMemory
)

// frame returns what to show of the state on a screen of this width; 0 means unlimited.
func (s state) frame(by sorting, width int) frame {
	f := frame{head: s.head(width), body: s.body(by, width)}
	for _, lines := range [][]line{f.head, f.body} {
		for i, l := range lines {
			if width > 0 {
				l = l.cut(width)
			}
			lines[i] = l.printable()
		}
	}
	return f
}

func (s state) head(width int) []line {
	head := []line{s.title(width)}
	if s.err == nil {
		return head
	}
	for _, l := range wrapped(s.err.Error(), width) {
		head = append(head, text(l, bad))
	}
	again := "Trying again."
	if at := s.reading.At; !at.IsZero() {
		again += " Showing data from " + at.Format(time.TimeOnly) + "."
	}
	return append(head, text(again, bad))
}

func (s state) body(by sorting, width int) []line {
	r := s.reading
	if r.At.IsZero() {
		if s.err != nil {
			return nil
		}
		return []line{waiting}
	}
	switch s.query.tab {
	case tabSweeps:
		return s.sweepTables(width)
	case tabLogs:
		return s.logLines(width)
	}
	sections := [][]line{s.hosts(by, width)}
	if len(r.Usage.GPUs) > 0 {
		sections = append(sections, s.gpus(by, width))
	}
	if groups := r.Members(); len(groups) > 0 {
		sections = append(sections, s.groupTable(groups, by, width))
	}
	if notes := notes(r, width); len(notes) > 0 {
		sections = append(sections, notes)
	}
	var body []line
	for _, section := range sections {
		body = append(append(body, line{}), section...)
	}
	return body
}

// title names the cluster, and says when it was read.
func (s state) title(width int) line {
	l := line{{s.cluster, strong}, {"  " + s.engine, faint}}
	if s.reading.At.IsZero() {
		return l
	}
	l = append(l, span{fmt.Sprintf("  %s, %s, %s", counted(len(s.reading.Cluster.Hosts), "host"), gpuCount(s.reading),
		counted(len(s.reading.Groups), "group")), plain})
	at := s.reading.At.Format(time.TimeOnly)
	if room := width - l.width() - len(at); room >= gap {
		return append(l, span{strings.Repeat(" ", room) + at, faint})
	}
	return append(l, span{"  " + at, faint})
}

// gpuCount shows the number of known GPUs, and 0 only if all hosts report their GPUs.
func gpuCount(r overview.Reading) string {
	if len(r.Usage.GPUs) == 0 {
		for _, u := range r.Usage.Hosts {
			if u.GPUsReason != "" {
				return unknown + " GPUs"
			}
		}
	}
	return counted(len(r.Usage.GPUs), "GPU")
}

func counted(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// sorted returns the names of things by value, largest first and unknown ones last. Ties, and things without values,
// are ordered by order.
func sorted[T any](things map[string]T, value func(T) *float64, order func(a, b string) int) []string {
	return slices.SortedFunc(maps.Keys(things), func(a, b string) int {
		if value != nil {
			va, vb := value(things[a]), value(things[b])
			switch {
			case va != nil && vb != nil && *va != *vb:
				return cmp.Compare(*vb, *va)
			case va == nil && vb != nil:
				return 1
			case va != nil && vb == nil:
				return -1
			}
		}
		return order(a, b)
	})
}

// choose returns the value to sort things by; nil for their names.
func choose[T any](by sorting, cpu, memory func(T) *float64) func(T) *float64 {
	return map[sorting]func(T) *float64{byCPU: cpu, byMemory: memory}[by]
}

func (s state) hosts(by sorting, width int) []line {
	r := s.reading
	size := barWidth(width)
	value := choose(by, func(u engine.HostUsage) *float64 { return u.CPUs.Last },
		func(u engine.HostUsage) *float64 { return u.MemoryMiB.Last })
	var rows [][]line
	for _, name := range sorted(r.Usage.Hosts, value, strings.Compare) {
		u := r.Usage.Hosts[name]
		rows = append(rows, []line{
			text(name, plain),
			cpusOf(u.CPUs.Last, u.TotalCPUs), bar(u.CPUs.Last, u.TotalCPUs, size, good),
			memoryOf(u.MemoryMiB.Last, u.TotalMemoryMiB), bar(u.MemoryMiB.Last, float64(u.TotalMemoryMiB), size,
				memoryTone(u.MemoryMiB.Last, float64(u.TotalMemoryMiB))),
			number("%.1f", u.Load.Last),
		})
	}
	return table([]column{
		{title: "HOST"}, {title: "CPUS", right: true}, {rank: 2}, {title: "MEMORY", right: true}, {rank: 1},
		{title: "LOAD", right: true, rank: 3},
	}, s.matching(rows), width)
}

func (s state) gpus(by sorting, width int) []line {
	r := s.reading
	size := barWidth(width)
	value := choose(by, func(u engine.GPUUsage) *float64 { return u.Utilisation.Last },
		func(u engine.GPUUsage) *float64 { return u.MemoryMiB.Last })
	order := func(a, b string) int {
		return cmp.Or(strings.Compare(r.Usage.GPUs[a].Host, r.Usage.GPUs[b].Host),
			cmp.Compare(r.Devices[a].Index, r.Devices[b].Index), strings.Compare(a, b))
	}
	var rows [][]line
	for _, uuid := range sorted(r.Usage.GPUs, value, order) {
		u := r.Usage.GPUs[uuid]
		rows = append(rows, []line{
			text(r.GPUName(uuid), plain),
			number("%.0f %%", u.Utilisation.Last), bar(u.Utilisation.Last, percent, size, good),
			memoryOf(u.MemoryMiB.Last, u.TotalMemoryMiB), bar(u.MemoryMiB.Last, float64(u.TotalMemoryMiB), size,
				memoryTone(u.MemoryMiB.Last, float64(u.TotalMemoryMiB))),
			number("%.0f °C", u.TemperatureC.Last), number("%.0f W", u.PowerW.Last),
			users(u.Members),
			text(r.Devices[uuid].Model, faint),
		})
	}
	return table([]column{
		{title: "GPU"}, {title: "BUSY", right: true}, {rank: 2}, {title: "MEMORY", right: true}, {rank: 3},
		{title: "TEMP", right: true, rank: 4}, {title: "POWER", right: true, rank: 5}, {title: "USED BY"},
		{title: "MODEL", rank: 6},
	}, s.matching(rows), width)
}

// users shows the members that use a GPU; nil means unknown.
func users(members []string) line {
	switch {
	case members == nil:
		return text(unknown, faint)
	case len(members) == 0:
		return text("no members", faint)
	}
	return text(domain.Enumerate(members), plain)
}
