package sweep

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/placement"
)

// startedAtOnce is the maximum number of runs of a sweep that one decision starts.
const startedAtOnce = 64

// Cluster is what there is to run on, at one moment.
type Cluster struct {
	Hosts map[string]domain.Host
	// SharedAddress and Images are those of [placement.Input].
	SharedAddress, Images bool
	BusyPorts             map[string][]int
	Closed                map[string]string
	Reserved              map[string]domain.Resources
	Room                  int
	// Groups are the documents of the cluster's groups, and Pools those of its GPU pools.
	Groups map[string]domain.GroupDocument
	Pools  map[string]domain.GPUPoolDocument
	// Devices is the state of the pools' devices, by UUID. FreeGPUMiB is how much of their memory the driver reports as
	// free; devices for which that is unknown are left out.
	Devices    map[string]placement.DeviceState
	FreeGPUMiB map[string]int64
	// FreeMiB is how much memory was measured as free, by host; hosts for which that is unknown are left out.
	FreeMiB map[string]int64
	// Claims are what waiting groups and sweeps are to get, in their turn.
	Claims []Claim
}

// Claim is the room that a waiting group or sweep is to get.
type Claim struct {
	Request  domain.RoomRequest
	Document domain.GroupDocument
}

// precedes reports whether the claim comes before a sweep: it has a higher priority, or the same and has waited longer.
func (c Claim) precedes(q Queue) bool {
	return cmp.Or(cmp.Compare(q.Spec.Priority, c.Request.Spec.Priority), c.Request.Since.Compare(q.Document.Since)) < 0
}

// Queue is a sweep with waiting runs.
type Queue struct {
	Document domain.SweepDocument
	// Spec has the runs, Keys are their keys in order, and Runs is their stored state.
	Spec domain.Sweep
	Keys []string
	Runs map[string]domain.Run
	// Leaving are the keys of runs whose former members still exist, with what those occupy. These runs can't start
	// yet.
	Leaving map[string]domain.Assignment
	// Parallelism is the stored result of how many of its runs side by side give the highest throughput; zero if there
	// is none.
	Parallelism domain.SweepParallelism
	// Held says why none of its runs can be started now, for example because an apply is changing it; "" if they can.
	Held string
}

// Admission is what was decided about waiting runs.
type Admission struct {
	// Starts are the runs to start, in order.
	Starts []Admitted
	// Waits says why the other runs of a sweep wait, by sweep.
	Waits map[string]string
	// Requests are the requests of sweeps without room for runs that could start, by name.
	Requests map[string]domain.RoomRequest
	// Next is when to decide again even if nothing changes; zero if there is nothing to wait for.
	Next time.Time
	// Measured reports whether runs wait for a measurement: for memory to become free.
	Measured bool
}

// Admitted is a run to start, and where.
type Admitted struct {
	Sweep, Key string
	At         domain.Assignment
}

// Admit decides which runs start. Sweeps take turns by priority, then by age, and their runs by key. A sweep without
// room keeps those behind it from taking what it waits for, so that none starves.
func Admit(c Cluster, queues []Queue, now time.Time) Admission {
	queues = slices.SortedFunc(slices.Values(queues), func(a, b Queue) int {
		return cmp.Or(cmp.Compare(b.Spec.Priority, a.Spec.Priority), a.Document.Since.Compare(b.Document.Since),
			cmp.Compare(a.Spec.Name, b.Spec.Name))
	})
	d := decision{
		cluster: c, now: now,
		admission: Admission{Waits: map[string]string{}, Requests: map[string]domain.RoomRequest{}},
		occupied:  make(map[string]domain.GroupDocument, len(c.Groups)+len(queues)), levels: map[string]int{},
	}
	maps.Copy(d.occupied, c.Groups)
	for _, q := range queues {
		d.occupied[q.Spec.Name] = q.Occupancy()
		if most, bounded := q.level(); bounded {
			d.levels[q.Spec.Name] = most
		}
	}
	d.cards = cardsOf(queues)
	d.starts = startsOf(queues)
	waiting := c.Claims
	for _, q := range queues {
		for len(waiting) > 0 && waiting[0].precedes(q) {
			if !waiting[0].Request.Sweep { // sweeps have their turn in this loop
				d.occupied[waiting[0].Request.Spec.Name] = waiting[0].Document
			}
			waiting = waiting[1:]
		}
		if why := d.admit(q); why != "" {
			d.admission.Waits[q.Spec.Name] = why
		}
	}
	return d.admission
}

type decision struct {
	cluster   Cluster
	now       time.Time
	admission Admission
	// occupied is what groups and sweeps occupy, including runs started by this decision.
	occupied map[string]domain.GroupDocument
	// levels are how many runs of a sweep a GPU or host takes, if that is limited.
	levels map[string]int
	cards  map[string]*card
	// starts are those of runs whose memory counts.
	starts []start
	// short are the sweeps without room so far, except the last one: unresolved finds out what that one waits for, if
	// it is needed.
	short      []shortage
	unresolved func()
}

// admit starts runs of a sweep, and says why the remaining ones wait.
func (d *decision) admit(q Queue) (why string) {
	s := q.Spec
	active := len(d.occupied[s.Name].Assignments)
	bound, bounded := d.limit(s, active)
	free := bound - active
	candidates, waiting, late := d.waiting(q, min(max(free, 0), startedAtOnce))
	switch {
	case waiting == 0:
		return ""
	case q.Held != "":
		return q.Held
	case free <= 0:
		return bounded
	case len(candidates) == 0:
		return late
	case full(d.vacancies(s)):
		return ParallelismReason(q.Document, q.Parallelism)
	}
	if d.unresolved != nil {
		d.unresolved()
		d.unresolved = nil
	}
	for _, earlier := range d.short {
		if d.keeps(earlier, s) {
			return fmt.Sprintf("sweep %q is ahead of it, and has no room", earlier.sweep)
		}
	}
	next := d.admission.Next
	placed, short := placement.Fill(d.input(s, candidates))
	var first string // of those without room
	for _, key := range candidates {
		if at, found := placed[domain.RunName(s.Name, key)]; found {
			d.start(s, key, at)
		} else {
			first = cmp.Or(first, key)
		}
	}
	switch left := waiting - len(placed); {
	case left > 0 && full(d.vacancies(s)):
		why = ParallelismReason(q.Document, q.Parallelism)
	case short.Err() != nil:
		d.admission.Measured = d.admission.Measured || s.Admission.FreeGPUMemory || s.Admission.FreeMemory
		if settle := settleOf(s); s.Admission.FreeGPUMemory && settle > 0 && len(placed) > 0 {
			d.wake(d.now.Add(settle)) // one waits for what these have just been given
		}
		d.unresolved = func() { d.keep(s, first) }
		d.request(q, len(candidates)-len(placed))
		return reason(short)
	case left == 0:
		why = ""
	case len(candidates) == free:
		why = bounded
	case len(candidates) == startedAtOnce:
		next = d.now
		d.short = append(d.short, shortage{sweep: s.Name, hosts: HostsFor(s, d.cluster)})
		why = fmt.Sprintf("other runs of the sweep start first, %d at a time", startedAtOnce)
	default:
		why = late
	}
	d.admission.Next = next // nobody waits for what was in the way
	return why
}

// start records that a run starts.
func (d *decision) start(s domain.Sweep, key string, at domain.Assignment) {
	d.admission.Starts = append(d.admission.Starts, Admitted{s.Name, key, at})
	d.occupied[s.Name].Assignments[domain.RunName(s.Name, key)] = at
	d.occupied[s.Name] = withRoles(d.occupied[s.Name], s, []string{key})
	d.take(at)
	d.starts = append(d.starts, start{at.Host, d.now, s.Resources.MemoryMiB, true})
}

// withRoles returns the document of what a sweep occupies, with the roles of some more runs.
func withRoles(doc domain.GroupDocument, s domain.Sweep, keys []string) domain.GroupDocument {
	maps.Copy(doc.Spec.Roles, GroupOf(s, keys...).Roles)
	return doc
}

// cpuTolerance absorbs the rounding of sums of fractional CPUs.
const cpuTolerance = 1e-6

// limit returns how many runs of a sweep may be active at a time, and why no more start once it is reached. More are
// active already if it was lowered. Runs that request nothing are limited by the number of CPUs, unless the best number
// is being measured.
func (d *decision) limit(s domain.Sweep, active int) (most int, why string) {
	if s.MaxParallel != nil {
		most = *s.MaxParallel
		return most, fmt.Sprintf("max_parallel is %d, and %d are running", most, max(active, most))
	}
	if _, measured := d.levels[s.Name]; measured || s.GPUs != nil || s.Resources.CPUs > 0 || s.Resources.MemoryMiB > 0 {
		return math.MaxInt, ""
	}
	cpus := 0.0
	for name := range HostsFor(s, d.cluster) {
		cpus += d.cluster.Hosts[name].Capacity.CPUs
	}
	most = max(int(cpus+cpuTolerance), 1)
	return most, fmt.Sprintf(
		"limited to the number of CPUs of the hosts, %d: set max_parallel or resources for a different limit", most,
	)
}

// waiting returns up to most of a sweep's runs that can start now, how many wait in total, and why those that can't
// start wait regardless of room. It schedules another decision for runs that are due later.
func (d *decision) waiting(q Queue, most int) (keys []string, waiting int, late string) {
	for _, key := range q.Keys {
		run := q.Runs[key]
		if !q.queued(key, run) {
			continue
		}
		waiting++
		if _, leaving := q.Leaving[key]; leaving {
			late = cmp.Or(late, fmt.Sprintf("run %q has to end before it starts over", key)) // its end is an event
			continue
		}
		if due := dueAt(q.Spec.Retry, run, d.now); due.After(d.now) {
			late = cmp.Or(late,
				fmt.Sprintf("the next attempt of run %q is due at %s", key, due.UTC().Format(time.DateTime+" MST")))
			d.wake(due)
			continue
		}
		if len(keys) == most {
			continue
		}
		if owner := d.owner(q.Spec.Name, key); owner != "" {
			late = cmp.Or(late, fmt.Sprintf("run %q needs the member name %s, which %q already uses", key,
				domain.RunName(q.Spec.Name, key), owner))
			continue
		}
		keys = append(keys, key)
	}
	return keys, waiting, late
}

// owner returns the group or sweep that already has a member with the name that a run's would get; "" if none does.
func (d *decision) owner(sweep, key string) string {
	name, owner := domain.RunName(sweep, key), ""
	for group, doc := range d.occupied {
		if _, taken := doc.Assignments[name]; taken && group != sweep && (owner == "" || group < owner) {
			owner = group
		}
	}
	return owner
}

// dueAt returns the earliest time of a run's next attempt. A time further away than any delay is ignored: the clock was
// set back, or the delay has been shortened.
func dueAt(r domain.Retry, run domain.Run, now time.Time) time.Time {
	if run.NotBefore == nil || run.NotBefore.After(now.Add(max(r.Delay.Or(0), longestBackOff))) {
		return time.Time{}
	}
	return *run.NotBefore
}

// wake schedules another decision at a time.
func (d *decision) wake(at time.Time) { d.admission.Wake(at) }

// Wake schedules another decision at a time, or earlier.
func (a *Admission) Wake(at time.Time) {
	if a.Next.IsZero() || at.Before(a.Next) {
		a.Next = at
	}
}

// request makes a sweep ask for room for this number of its runs, limited by the places that its level leaves.
func (d *decision) request(q Queue, runs int) {
	most := d.vacancies(q.Spec)
	places := 0
	for place, n := range most {
		most[place] = max(n, 0)
		places += most[place]
	}
	if most != nil {
		runs = min(runs, places)
	}
	g := GroupOf(WithoutRuns(q.Spec), domain.WaitingRuns)
	g.Template, g.Priority = domain.Template{Image: g.Image}, q.Spec.Priority
	r := domain.RoomRequest{Spec: g, Sweep: true, Most: most, Since: q.Document.Since}
	d.admission.Requests[q.Spec.Name] = r.WithRuns(runs)
}

// input returns the placement input for some runs of a sweep, alongside everything that already runs.
func (d *decision) input(s domain.Sweep, candidates []string) (in placement.Input, gentle bool) {
	members := make([]domain.Member, 0, len(candidates))
	for _, key := range candidates {
		members = append(members, domain.Member{Name: domain.RunName(s.Name, key), Role: key})
	}
	c := d.cluster
	in = placement.Input{
		Group: GroupOf(s, candidates...), Members: members, Hosts: c.Hosts, SharedAddress: c.SharedAddress,
		Images: c.Images, BusyPorts: c.BusyPorts,
		Closed: c.Closed, Reserved: c.Reserved, Room: c.Room, Pools: c.Pools, Devices: d.closedDevices(s),
		Groups: d.occupied,
		Most:   d.vacancies(s),
	}
	if s.Admission.FreeMemory {
		in.FreeMiB = d.freeMiB(s)
		in.Closed = d.closedHosts(s, in.FreeMiB)
	}
	return in, s.Admission.FreeGPUMemory || d.limited(s)
}

// Fits returns what prevents a sweep's runs from ever starting: what one would lack on a cluster where nothing else
// runs.
func Fits(s domain.Sweep, c Cluster) domain.Problems {
	in := alone(s, c)
	in.Devices = tooSmall(s, c.Pools, nil)
	_, problems := placement.Fill(in, false)
	return OfRuns(append(placement.CheckSpread(in.Group, domain.Group{}, c.Hosts), problems...))
}

// reason says in one sentence why a run is not started.
func reason(short domain.Problems) string {
	detail, _, _ := strings.Cut(short[0].Detail, "; lower ")
	return short[0].Summary + ": " + detail
}
