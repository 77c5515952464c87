package sweep

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// TestModel simulates a cluster with a controller that dies now and then, sweeps that change while they run, GPUs that
// others use, and programs that end in all possible ways. Each case is identified by its seed.
func TestModel(t *testing.T) {
	t.Parallel()
	cases := uint64(10_000)
	if testing.Short() {
		cases = 500
	}
	const shares = 4
	var tallies [shares]tally
	t.Run("cases", func(t *testing.T) {
		for share := range uint64(shares) {
			t.Run(fmt.Sprint(share), func(t *testing.T) {
				t.Parallel()
				for seed := share; seed < cases && play(t, seed, &tallies[share]); seed += shares {
				}
			})
		}
	})
	if t.Failed() {
		return
	}
	var all tally
	for _, some := range tallies {
		all.add(some)
	}
	t.Logf("%d cases: %+v", cases, all)
	// A model in which nothing happens shows nothing.
	for what, n := range map[string]int{
		"starts": all.starts, "ends out of memory": all.outOfMemory, "failures": all.failures, "lost": all.lost,
		"deaths": all.deaths, "applies": all.applies, "wishes": all.wishes,
		"reruns": all.reruns, "runs out of memory for good": all.hopeless, "cancelled": all.cancelled,
		"waits for others": all.kept, "waits by level": all.levelled,
	} {
		if n < int(cases)/50 {
			t.Errorf("of %d cases, the number of %s is %d", cases, what, n)
		}
	}
}

// tally counts what has happened.
type tally struct {
	steps, looks, starts, outOfMemory, failures, lost, deaths    int
	applies, wishes, reruns, hopeless, cancelled, kept, levelled int
}

func (t *tally) add(o tally) {
	t.steps, t.looks, t.starts, t.outOfMemory, t.failures, t.lost = t.steps+o.steps, t.looks+o.looks, t.starts+o.starts,
		t.outOfMemory+o.outOfMemory, t.failures+o.failures, t.lost+o.lost
	t.deaths, t.applies, t.wishes, t.reruns, t.hopeless = t.deaths+o.deaths, t.applies+o.applies, t.wishes+o.wishes,
		t.reruns+o.reruns, t.hopeless+o.hopeless
	t.cancelled, t.kept, t.levelled = t.cancelled+o.cancelled, t.kept+o.kept, t.levelled+o.levelled
}

// lab is a cluster, and the controller of its sweeps.
type lab struct {
	*tally
	t    *testing.T
	seed uint64
	rnd  *rand.Rand
	// age is the true time, and offset the deviation of the controller's clock.
	age, offset time.Duration
	cluster     Cluster
	// foreign is what processes that are not members use, by device or host.
	foreign map[string]int64
	sweeps  []*labSweep
	members map[string]*labMember
	// calm begins after a while: nobody changes anything, and nothing breaks.
	calm bool
	// event makes the controller look. Otherwise it looks at next, and often while measured.
	event, measured bool
	next            time.Time
	// wished is true once somebody has cancelled a run.
	wished, failed bool
}

type labSweep struct {
	spec    domain.Sweep
	doc     domain.SweepDocument
	disk    disk
	record  *Record
	batch   int
	leaving map[string]domain.Assignment
	// greed is what its runs take of a GPU beyond what they ask for, in percent of that.
	greed int64
	ids   int
	// level is how many of its runs a place takes, if it has progress.
	level int
}

// disk keeps the parts of a record as they are written, by name.
type disk map[string]written

type written struct {
	revision int
	data     []byte
}

func (d disk) put(t *testing.T, r *Record, record domain.SweepRecord) {
	t.Helper()
	data, err := json.Marshal(record)
	if err != nil || d[record.Part].revision != record.Revision {
		t.Fatalf("part %s is written on top of revision %d, and %d is stored: %v", record.Part, record.Revision,
			d[record.Part].revision, err)
	}
	record.Revision++
	d[record.Part] = written{record.Revision, data}
	r.Stored(record)
}

func (d disk) read(t *testing.T) map[string]domain.SweepRecord {
	t.Helper()
	records := map[string]domain.SweepRecord{}
	for part, w := range d {
		var record domain.SweepRecord
		if err := json.Unmarshal(w.data, &record); err != nil {
			t.Fatal(err)
		}
		record.Revision = w.revision
		records[part] = record
	}
	return records
}

// labMember is a member that the engine knows.
type labMember struct {
	sweep      *labSweep
	key        string
	batch      int
	at         domain.Assignment
	env, image string
	// takes is when it allocates its memory, ends when it ends, and goes when it is removed; 0 means that nobody has
	// asked for that.
	takes, ends, goes time.Duration
	gpuMiB, mib       int64
	took              bool
	code              int
	vanishes          bool
	observed          domain.Observed
	log               []string
}

func (l *lab) fail(format string, args ...any) {
	l.t.Helper()
	if !l.failed {
		l.t.Errorf("case %d, after %s: %s", l.seed, l.age, fmt.Sprintf(format, args...))
	}
	l.failed = true
}

func (l *lab) now() time.Time { return noon.Add(l.age + l.offset) }

// chance is true in this percentage of cases.
func (l *lab) chance(percent int) bool { return l.rnd.IntN(100) < percent }

func pick[T any](l *lab, from ...T) T { return from[l.rnd.IntN(len(from))] }

// play runs a cluster until all runs have ended, and reports whether nothing went wrong.
func play(t *testing.T, seed uint64, all *tally) bool {
	l := &lab{
		tally: all, t: t, seed: seed, rnd: rand.New(rand.NewPCG(seed, 7)), foreign: map[string]int64{},
		members: map[string]*labMember{}, event: true,
	}
	l.build()
	unrest := l.rnd.IntN(25)
	for step := 0; !l.failed; step++ {
		l.steps++
		if step == unrest {
			l.settleDown()
		}
		if l.calm && len(l.members) == 0 && l.isOver() {
			l.checkEnds()
			return !l.failed
		}
		if step > unrest+l.patience() {
			l.fail("not all runs have ended: %s", l)
			return false
		}
		if !l.calm {
			l.disturb()
		}
		l.pass()
		if l.event || l.measured || !l.next.IsZero() && !l.next.After(l.now()) {
			l.look()
		}
	}
	return false
}

// build draws a cluster, and sweeps that could each run there.
func (l *lab) build() {
	names := []string{"h1", "h2", "h3"}[:1+l.rnd.IntN(2)]
	l.cluster.Hosts = hostsOf(float64(pick(l, 1, 2, 4)), names...)
	l.cluster.SharedAddress = l.chance(50)
	devices := map[string][]domain.Device{}
	for i, name := range names {
		for j := range l.rnd.IntN(3) {
			devices[name] = append(devices[name],
				domain.Device{UUID: fmt.Sprintf("GPU-%d-%d", i, j), MemoryMiB: 10_000})
		}
	}
	l.cluster.Pools = exclusive(devices)
	if l.chance(70) {
		l.cluster.Pools = slots(1000, devices)
	}
	if l.chance(30) { // another pool has the same devices
		doc := l.cluster.Pools["p"]
		doc.Spec.Name = "q"
		l.cluster.Pools["q"] = doc
	}
	for i := range 1 + l.rnd.IntN(3) {
		for {
			s := &labSweep{
				disk: disk{}, spec: l.drawSweep(fmt.Sprintf("s%d", i)), greed: pick(l, int64(0), 0, 0, 25, 50),
				level: 1 + l.rnd.IntN(3),
			}
			if len(Fits(s.spec, l.cluster)) > 0 {
				continue
			}
			s.create(l)
			l.sweeps = append(l.sweeps, s)
			break
		}
	}
}

func (l *lab) drawSweep(name string) domain.Sweep {
	s := sweepOf(name, 1+l.rnd.IntN(6))
	s.Resources = domain.ResourceRequirements{CPUs: pick(l, 0.0, 0, 0.5, 1)}
	s.Image, s.Priority, s.Rerun = "v1", l.rnd.IntN(2), pick(l, append(domain.Reruns, "")...)
	if l.chance(40) {
		s.MaxParallel = new(1 + l.rnd.IntN(3))
	}
	if l.chance(60) {
		s.GPUs = &domain.GPURequest{
			Pool: pick(l, "p", "p", "q"), Count: pick(l, nil, nil, nil, new(2)),
			MemoryMiB: pick(l, int64(900), 2000, 4000),
		}
		s.Admission.FreeGPUMemory = l.chance(60)
	}
	if l.chance(25) {
		s.Resources.MemoryMiB = pick(l, int64(5000), 20_000)
		s.Admission.FreeMemory = true
	}
	s.Admission.Settle = pick(l, nil, seconds(10), seconds(0))
	s.Retry = domain.Retry{
		MaxAttempts: pick(l, nil, new(3), new(0)), OutOfMemory: pick(l, nil, nil, new(2), new(0)),
		Delay: pick(l, nil, seconds(2), seconds(30)),
	}
	if l.chance(25) {
		s.Progress = &domain.SweepProgress{Pattern: "step"}
	}
	if l.chance(15) {
		s.OnFailure = &domain.SweepOnFailure{After: 1 + l.rnd.IntN(3), Then: pick(l, domain.SweepThens...)}
	}
	return s
}

// create stores a sweep as a new one, whatever is left of an earlier one with its name.
func (s *labSweep) create(l *lab) {
	s.ids++
	next := documentOf(s.spec)
	s.doc = Change(domain.SweepDocument{}, next)
	s.doc.ID, s.doc.Since, s.doc.Revision = fmt.Sprint(s.ids), l.now().Add(time.Duration(l.rnd.IntN(3))*time.Second), 1
	s.open(l)
}

// open is what a controller does on start.
func (s *labSweep) open(l *lab) {
	s.record, s.batch = OpenRecord(s.doc, s.disk.read(l.t)), 0
	for _, run := range s.record.Runs() {
		s.batch = max(s.batch, run.Batch)
	}
}

// parallelism returns the stored number of runs with the highest throughput.
func (s *labSweep) parallelism() domain.SweepParallelism {
	p := Parallelism(s.doc, domain.SweepParallelism{})
	p.Level = s.level
	return p
}

// settleDown ends all disturbances: what others use is freed, and all hosts are there.
func (l *lab) settleDown() {
	l.calm, l.event = true, true
	l.cluster.Closed, l.cluster.Groups, l.foreign = nil, nil, map[string]int64{}
	for _, s := range l.sweeps {
		for key, run := range s.record.Runs() {
			if run.State == domain.RunPaused {
				l.wish(s, key, domain.WishResume)
			}
		}
	}
}

// wish makes somebody ask for something for a run.
func (l *lab) wish(s *labSweep, key string, wish domain.RunWish) {
	if _, found := s.spec.Runs[key]; found {
		l.wishes++
		s.record.Set(key, Wished(s.doc, s.spec.Run(key), s.record.Runs()[key], wish, "ada", l.now()))
		l.wished, l.event = l.wished || wish == domain.WishCancel, true
	}
}

// patience returns how many steps all runs may take once it is calm.
func (l *lab) patience() int {
	steps := 200
	for _, s := range l.sweeps {
		attempts := cmp.Or(s.spec.Attempts(), 12) + s.spec.OutOfMemoryAttempts() + 2
		steps += 30 * attempts * len(s.spec.Runs)
	}
	return steps
}

func (l *lab) isOver() bool {
	for _, s := range l.sweeps {
		if !Summarise(s.doc, s.spec, s.record.Runs()).Ended() {
			return false
		}
	}
	return true
}

// String describes the state of the sweeps.
func (l *lab) String() string {
	var all []string
	for _, s := range l.sweeps {
		all = append(all, fmt.Sprintf("%s: %s", s.spec.Name, Summarise(s.doc, s.spec, s.record.Runs())))
	}
	return strings.Join(all, "; ")
}

// disturb makes somebody do something, or nobody.
func (l *lab) disturb() {
	switch l.rnd.IntN(14) {
	case 0, 1:
		l.apply(l.sweeps[l.rnd.IntN(len(l.sweeps))])
	case 2: // a process that is not a member
		for _, host := range slices.Sorted(maps.Keys(l.cluster.Hosts)) {
			for _, device := range l.cluster.Pools["p"].Devices[host] {
				l.foreign[device.UUID] = pick(l, int64(0), 0, 500, 9500)
			}
		}
		l.foreign["h1"] = pick(l, int64(0), 50_000)
		l.event = true
	case 3:
		l.cluster.Closed = pick(l, nil, map[string]string{"h1": "host h1 is down"})
		l.event = true
	case 4:
		l.offset -= pick(l, 300*time.Millisecond, 5*time.Second, 30*time.Second, 2*time.Hour)
	case 5:
		role := domain.Role{Resources: domain.ResourceRequirements{CPUs: 1}}
		l.cluster.Groups = pick(l, nil, map[string]domain.GroupDocument{"g": {
			Spec:        domain.Group{Name: "g", Roles: map[string]domain.Role{"w": role}},
			Assignments: map[string]domain.Assignment{"g-w-0": {Host: "h1", Port: 20000}},
		}})
		l.event = true
	case 6, 7:
		l.wish(l.sweeps[l.rnd.IntN(len(l.sweeps))], fmt.Sprintf("r%d", l.rnd.IntN(6)),
			pick(l, domain.WishPause, domain.WishPause, domain.WishResume, domain.WishCancel))
	}
}

// apply changes a sweep.
func (l *lab) apply(s *labSweep) {
	l.applies++
	next := s.spec
	next.Runs = maps.Clone(s.spec.Runs)
	key := fmt.Sprintf("r%d", l.rnd.IntN(8))
	switch l.rnd.IntN(8) {
	case 0, 1:
		next.Runs[key] = map[string]string{"LR": fmt.Sprint(l.rnd.IntN(1000))}
	case 2:
		if len(next.Runs) > 1 {
			delete(next.Runs, key)
		}
	case 3:
		next.Image = "v" + fmt.Sprint(l.rnd.IntN(1000))
	case 4:
		next.Triggers = map[string]string{"data": fmt.Sprint(l.rnd.IntN(1000))}
	case 5:
		drawn := l.drawSweep(next.Name)
		next.MaxParallel, next.Priority, next.Rerun, next.Retry = drawn.MaxParallel, drawn.Priority, drawn.Rerun,
			drawn.Retry
	case 6:
		drawn := l.drawSweep(next.Name)
		next.Resources, next.GPUs, next.Admission, next.Progress = drawn.Resources, drawn.GPUs, drawn.Admission,
			drawn.Progress
		s.level = 1 + l.rnd.IntN(3)
	case 7:
		if l.chance(30) { // destroyed and created again, with a part of it left
			s.create(l)
			l.event = true
			return
		}
	}
	if len(Fits(next, l.cluster)) > 0 {
		return
	}
	doc := Change(s.doc, documentOf(next))
	doc.ID, doc.Since = s.doc.ID, s.doc.Since
	l.reruns += Reruns(doc, next, s.record.Runs())
	doc.Revision++
	s.spec, s.doc = next, doc
	s.record.doc = doc
	l.event = true
}

// pass lets time pass: a little, or until something happens.
func (l *lab) pass() {
	step := time.Duration(l.rnd.IntN(3000)) * time.Millisecond
	if l.chance(80) && !l.event {
		until := time.Hour
		if l.measured {
			until = 20 * time.Second
		}
		if !l.next.IsZero() {
			until = min(until, max(l.next.Sub(l.now()), 0))
		}
		for _, m := range l.members {
			for _, at := range []time.Duration{m.takes, m.ends, m.goes} {
				if at > l.age {
					until = min(until, at-l.age)
				}
			}
		}
		if until == time.Hour && l.calm && !l.isOver() { // nobody would look again
			l.fail("nothing is to happen any more, and not all runs have ended: %s", l)
		}
		step = until
	}
	l.age += step
	for _, m := range l.members {
		if run := m.sweep.record.Runs()[m.key]; run.State == domain.RunPaused && run.Active() { // it is halted
			m.takes, m.ends = m.takes+step, m.ends+step
		}
	}
	for _, name := range slices.Sorted(maps.Keys(l.members)) {
		m := l.members[name]
		if m.observed.State == domain.StateRunning && !m.took && m.takes <= l.age {
			m.took = true
			for _, uuid := range m.at.GPUs.UUIDs() {
				if l.taken(uuid) > 10_000 {
					m.ends, m.code, m.vanishes, m.log = l.age, 1, false, []string{
						"RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB",
					}
				}
			}
		}
		if m.observed.State == domain.StateRunning && m.ends <= l.age {
			l.end(name, m)
		}
		if m.goes > 0 && m.goes <= l.age {
			delete(l.members, name)
			l.event = true
		}
	}
}

// taken returns how much memory of a device or host is in use.
func (l *lab) taken(what string) int64 {
	taken := l.foreign[what]
	for _, m := range l.members {
		if m.took && m.observed.State == domain.StateRunning {
			if m.at.Host == what {
				taken += m.mib
			}
			if slices.Contains(m.at.GPUs.UUIDs(), what) {
				taken += m.gpuMiB
			}
		}
	}
	return taken
}

func (l *lab) end(name string, m *labMember) {
	l.event = true
	if m.vanishes {
		delete(l.members, name)
		return
	}
	m.observed.State, m.observed.ExitCode, m.observed.FinishedAt = domain.StateCompleted, &m.code, new(l.now())
	if m.code != 0 {
		m.observed.State, m.observed.LastError = domain.StateFailed, fmt.Sprintf("exit code %d", m.code)
	}
}

// dies reports whether the controller dies just now. Another one reads what is stored.
func (l *lab) dies() bool {
	if l.calm || !l.chance(3) {
		return false
	}
	l.deaths++
	for _, s := range l.sweeps {
		s.open(l)
	}
	l.event = true
	return true
}

// look is what the controller does: it updates ended runs, and starts others.
func (l *lab) look() {
	l.looks++
	l.event, l.measured, l.next = false, false, time.Time{}
	if l.dies() {
		return
	}
	for _, s := range l.sweeps {
		l.settle(s)
	}
	if l.dies() || !l.store() {
		return
	}
	var queues []Queue
	for _, s := range l.sweeps {
		l.removeOthers(s)
		q := Queue{
			Document: s.doc, Spec: s.spec, Keys: s.spec.Keys(), Runs: s.record.Runs(), Leaving: s.leaving,
			Parallelism: s.parallelism(),
		}
		if l.chance(5) {
			q.Held, l.event = "it is being changed", true
		}
		queues = append(queues, q)
	}
	if !slices.ContainsFunc(queues, Queue.Waits) {
		return
	}
	l.start(l.admit(queues))
}

// settle updates the runs of a sweep, as package controller does.
func (l *lab) settle(s *labSweep) {
	now, runs := l.now(), s.record.Runs()
	for _, key := range slices.Sorted(maps.Keys(runs)) {
		run, own := runs[key], s.spec.Run(key)
		if _, stays := s.spec.Runs[key]; !stays {
			s.record.Forget(key)
			continue
		}
		if !run.Active() {
			continue
		}
		m := l.members[domain.RunName(s.spec.Name, key)]
		switch {
		case Stale(s.doc, own, run):
			s.record.Set(key, Outdated(s.doc, own, run, now))
		case m == nil || m.batch != run.Batch:
			l.lost++
			s.record.Set(key, Lost(run, "its member vanished", now))
		case m.observed.State.Ended():
			ended := Ended(s.spec, run, m.observed, m.log, l.beside(run), now)
			l.checkEnded(s, m, ended)
			s.record.Set(key, ended)
		}
	}
	live := map[string]domain.Run{}
	for key, run := range s.record.Runs() {
		live[key] = Now(s.doc, s.spec.Run(key), run)
	}
	if why, all := Failing(s.doc, s.spec, s.record.Runs()); why != "" {
		for _, key := range s.spec.Keys() {
			if run := s.record.Runs()[key]; !live[key].State.Ended() && (all || !run.Active()) {
				l.cancelled++
				s.record.Set(key, Cancelled(s.doc, s.spec.Run(key), run, why, now))
			}
		}
	}
}

// beside returns how many other runs are on the devices of a run.
func (l *lab) beside(run domain.Run) int {
	n := -1
	for _, s := range l.sweeps {
		for _, other := range s.record.Runs() {
			if other.Active() && slices.ContainsFunc(other.Assignment.GPUs.UUIDs(), func(uuid string) bool {
				return strings.Contains(string(run.Assignment.GPUs), uuid)
			}) {
				n++
			}
		}
	}
	return max(n, 0)
}

// store stores what has changed; false if the controller dies meanwhile.
func (l *lab) store() bool {
	for _, s := range l.sweeps {
		for _, record := range s.record.Changed() {
			s.disk.put(l.t, s.record, record)
			if l.dies() {
				return false
			}
		}
	}
	return true
}

// removeOthers removes members that do not belong to an active run.
func (l *lab) removeOthers(s *labSweep) {
	s.leaving = map[string]domain.Assignment{}
	for _, name := range slices.Sorted(maps.Keys(l.members)) {
		m := l.members[name]
		if m.sweep != s {
			continue
		}
		if run := s.record.Runs()[m.key]; run.Active() && run.Batch == m.batch {
			continue
		}
		s.leaving[m.key] = m.at
		if m.observed.State.Ended() {
			s.leaving[m.key] = domain.Assignment{}
		}
		if m.goes == 0 {
			m.goes = l.age + time.Duration(l.rnd.IntN(3000))*time.Millisecond + 1
		}
	}
}

// admit decides, and checks what was decided.
func (l *lab) admit(queues []Queue) []Admitted {
	c := l.cluster
	c.FreeGPUMiB, c.FreeMiB = map[string]int64{}, map[string]int64{}
	for host := range c.Hosts {
		c.FreeMiB[host] = 64_000 - l.taken(host)
		for _, device := range c.Pools["p"].Devices[host] {
			c.FreeGPUMiB[device.UUID] = max(10_000-l.taken(device.UUID), 0)
		}
	}
	got := Admit(c, queues, l.now())
	if l.chance(10) {
		again := slices.Clone(queues)
		slices.Reverse(again)
		if other := Admit(c, again, l.now()); !reflect.DeepEqual(got, other) {
			l.fail("one input, two decisions: %+v and %+v", got, other)
		}
	}
	l.next, l.measured = got.Next, got.Measured
	for _, why := range got.Waits {
		if strings.Contains(why, "is ahead of it") {
			l.kept++
		}
		if strings.Contains(why, "at a time on a") {
			l.levelled++
		}
	}
	if len(got.Starts) > 0 {
		l.checkStarts(c, queues, got.Starts)
	}
	return got.Starts
}

// start starts runs, after storing that it will.
func (l *lab) start(starts []Admitted) {
	for _, a := range starts {
		s := l.sweep(a.Sweep)
		s.record.Set(a.Key, Start(s.doc, s.spec.Run(a.Key), s.record.Runs()[a.Key], a.At, s.batch+1, l.now()))
	}
	if l.dies() || !l.store() || l.dies() {
		return
	}
	for _, s := range l.sweeps {
		s.batch++
	}
	for _, a := range starts {
		l.starts++
		s, name := l.sweep(a.Sweep), domain.RunName(a.Sweep, a.Key)
		if l.members[name] != nil {
			l.fail("%s is started, and there is a member of that name", name)
		}
		run := s.record.Runs()[a.Key]
		m := &labMember{
			sweep: s, key: a.Key, batch: run.Batch, at: a.At, env: s.spec.Runs[a.Key]["LR"], image: s.spec.Image,
			mib:      run.Needs.Resources.MemoryMiB,
			observed: domain.Observed{Name: name, State: domain.StateRunning, Run: run.Batch},
		}
		if run.Needs.GPUs != nil {
			m.gpuMiB = run.Needs.GPUs.MemoryMiB * (100 + s.greed) / 100
			if l.hopelessRun(m) {
				m.gpuMiB = 10_001
			}
		}
		m.takes = l.age + time.Duration(1+l.rnd.IntN(9000))*time.Millisecond
		m.ends = m.takes + time.Duration(1+l.rnd.IntN(40_000))*time.Millisecond
		switch chance := l.rnd.IntN(100); {
		case chance < 15:
			m.code = pick(l, 1, 3, 137)
		case chance < 17:
			m.code = 127
		case chance < 25 && !l.calm:
			m.vanishes = true
		}
		l.members[name] = m
		l.event = true
	}
}

// hopelessRun reports whether a run needs more than a GPU has.
func (l *lab) hopelessRun(m *labMember) bool { return l.seed%10 == 3 && m.key == "r1" }

func (l *lab) sweep(name string) *labSweep {
	return l.sweeps[slices.IndexFunc(l.sweeps, func(s *labSweep) bool { return s.spec.Name == name })]
}

// checkEnded checks a run whose member has ended.
func (l *lab) checkEnded(s *labSweep, m *labMember, run domain.Run) {
	oom := len(m.log) > 0 && s.spec.GPUs != nil
	switch {
	case run.State == domain.RunSucceeded && m.code != 0, run.State != domain.RunSucceeded && m.code == 0:
		l.fail("%s ended with %d, and is %s", m.observed.Name, m.code, run.State)
	case oom && run.State != domain.RunQueued && run.State != domain.RunOutOfMemory:
		l.fail("%s ran out of memory, and is %s", m.observed.Name, run.State)
	case run.State == domain.RunSucceeded && m.env != s.spec.Runs[m.key]["LR"]:
		l.fail("%s succeeded with another environment than it has", m.observed.Name)
	}
	if oom {
		l.outOfMemory++
	} else if m.code != 0 {
		l.failures++
	}
	if run.State == domain.RunOutOfMemory {
		l.hopeless++
	}
	if most := s.spec.Attempts(); run.State == domain.RunQueued && !oom && most > 0 && run.Failures >= most {
		l.fail("%s has failed %d times, and is to be tried again", m.observed.Name, run.Failures)
	}
	if run.State == domain.RunQueued && oom && run.OutOfMemory >= s.spec.OutOfMemoryAttempts() {
		l.fail("%s has run out of memory %d times, and is to be tried again", m.observed.Name, run.OutOfMemory)
	}
}

// checkStarts checks the decided starts against the rules, counting independently from the stored state.
func (l *lab) checkStarts(c Cluster, queues []Queue, starts []Admitted) {
	onHost, onDevice, users, given := map[string]domain.Resources{}, map[string]int{}, map[string]int{},
		map[string]int{}
	lastStart := map[string]time.Time{}
	take := func(at domain.Assignment, needs domain.RunNeeds) {
		used := onHost[at.Host]
		onHost[at.Host] = domain.Resources{
			CPUs: used.CPUs + needs.Resources.CPUs, MemoryMiB: used.MemoryMiB + needs.Resources.MemoryMiB,
		}
		for _, uuid := range at.GPUs.UUIDs() {
			users[uuid]++
			onDevice[uuid] += max(1, int(needs.GPUs.MemoryMiB+999)/1000)
		}
	}
	for _, doc := range c.Groups {
		for _, at := range doc.Assignments {
			take(at, domain.RunNeeds{Resources: doc.Spec.Roles["w"].Resources})
		}
	}
	active := map[string]int{}
	for _, q := range queues {
		for _, key := range slices.Sorted(maps.Keys(q.Runs)) {
			if run := q.Runs[key]; run.Active() {
				active[q.Spec.Name]++
				take(*run.Assignment, *run.Needs)
				for _, uuid := range run.Assignment.GPUs.UUIDs() {
					if run.StartedAt.After(lastStart[uuid]) {
						lastStart[uuid] = *run.StartedAt
					}
				}
			}
		}
	}
	seen := map[string]bool{}
	l.checkLevels(queues, starts)
	for _, a := range starts {
		q := queues[slices.IndexFunc(queues, func(q Queue) bool { return q.Spec.Name == a.Sweep })]
		s, run, name := q.Spec, q.Runs[a.Key], a.Sweep+"/"+a.Key
		_, leaving := q.Leaving[a.Key]
		switch {
		case seen[name]:
			l.fail("%s is started twice at once", name)
		case q.Held != "" || leaving:
			l.fail("%s is started though it is held, or leaving", name)
		case run.State == domain.RunRunning || run.State == domain.RunPaused:
			l.fail("%s is started while it is %s", name, run.State)
		case run.State.Ended() && !Stale(q.Document, s.Run(a.Key), run):
			l.fail("%s is started again, which is %s", name, run.State)
		case run.NotBefore != nil && run.NotBefore.After(l.now()) && !run.NotBefore.After(l.now().Add(longestBackOff)):
			l.fail("%s is started %s before it is due", name, run.NotBefore.Sub(l.now()))
		case c.Closed[a.At.Host] != "":
			l.fail("%s is started on host %s, which is closed", name, a.At.Host)
		}
		seen[name] = true
		for _, key := range q.Keys {
			other := q.Runs[key]
			_, leaves := q.Leaving[key]
			late := other.NotBefore != nil && other.NotBefore.After(l.now())
			if key < a.Key && !seen[a.Sweep+"/"+key] && q.queued(key, other) && !leaves && !late {
				l.fail("%s is started, and not %s before it", name, key)
			}
		}
		active[a.Sweep]++
		take(a.At, domain.RunNeeds{Resources: s.Resources, GPUs: s.GPUs})
		if s.MaxParallel != nil && active[a.Sweep] > *s.MaxParallel {
			l.fail("%s is the %d. that is on, of %d", name, active[a.Sweep], *s.MaxParallel)
		}
		host, used := c.Hosts[a.At.Host], onHost[a.At.Host]
		if s.Resources.CPUs > 0 && used.CPUs > host.Capacity.CPUs+1e-6 ||
			s.Resources.MemoryMiB > 0 && used.MemoryMiB > host.Capacity.MemoryMiB {
			l.fail("%s is started on host %s, of which %+v are used", name, a.At.Host, used)
		}
		if s.Admission.FreeMemory && c.FreeMiB[a.At.Host] < s.Resources.MemoryMiB {
			l.fail("%s is started on host %s, of which %d MiB are free", name, a.At.Host, c.FreeMiB[a.At.Host])
		}
		if s.GPUs == nil {
			continue
		}
		if n := len(a.At.GPUs.UUIDs()); n != s.GPUs.Devices() {
			l.fail("%s has %d devices", name, n)
		}
		for _, uuid := range a.At.GPUs.UUIDs() {
			pool := c.Pools[s.GPUs.Pool].Spec
			if most := pool.SlotsOf(domain.Device{MemoryMiB: 10_000}); pool.Sharing == domain.Slots &&
				onDevice[uuid] > most || pool.Sharing != domain.Slots && users[uuid] > 1 {
				l.fail("%s is started on %s, of which %d slots are used by %d", name, uuid, onDevice[uuid], users[uuid])
			}
			given[uuid]++
			if !s.Admission.FreeGPUMemory {
				continue
			}
			settle := settleOf(s)
			since := l.now().Sub(lastStart[uuid])
			// If the clock was set back by more than the settle time, this is unknown.
			if since >= 0 && since < settle || since < 0 && -since <= settle {
				l.fail("%s is started on %s, %s after another one", name, uuid, since)
			}
			if given[uuid] > 1 {
				l.fail("%s is the %d. run that is started at once on %s", name, given[uuid], uuid)
			}
			if free := c.FreeGPUMiB[uuid]; free < s.GPUs.MemoryMiB+300 {
				l.fail("%s is started on %s, of which %d MiB are free", name, uuid, free)
			}
		}
	}
}

// checkLevels checks that after some starts no place has more runs of a sweep than its level.
func (l *lab) checkLevels(queues []Queue, starts []Admitted) {
	for _, q := range queues {
		if q.Spec.Progress == nil {
			continue
		}
		on := map[string]int{}
		count := func(at domain.Assignment) {
			places := []string{at.Host}
			if q.Spec.GPUs != nil {
				places = at.GPUs.UUIDs()
			}
			for _, place := range places {
				on[place]++
			}
		}
		for _, run := range q.Runs {
			if run.Active() {
				count(*run.Assignment)
			}
		}
		for _, at := range q.Leaving {
			if at.Host != "" {
				count(at)
			}
		}
		for _, a := range starts {
			if a.Sweep != q.Spec.Name {
				continue
			}
			count(a.At)
			for _, place := range append(a.At.GPUs.UUIDs(), a.At.Host) {
				if on[place] > q.Parallelism.Level {
					l.fail("%s/%s is the %d. on %s, which takes %d", a.Sweep, a.Key, on[place], place,
						q.Parallelism.Level)
				}
			}
		}
	}
}

// checkEnds checks how all runs have ended.
func (l *lab) checkEnds() {
	for _, s := range l.sweeps {
		for key := range s.spec.Runs {
			run := s.record.Runs()[key]
			if most := s.spec.Attempts(); run.State == domain.RunFailed && run.Failures == 0 ||
				run.State == domain.RunOutOfMemory && run.OutOfMemory == 0 ||
				most > 0 && run.State == domain.RunQueued {
				l.fail("%s/%s has ended as %+v", s.spec.Name, key, run)
			}
			if run.State == domain.RunCancelled && s.spec.OnFailure == nil && !l.wished {
				l.fail("%s/%s was cancelled, for no reason", s.spec.Name, key)
			}
			if run.Active() {
				l.fail("%s/%s has ended, and takes up %v", s.spec.Name, key, run.Assignment)
			}
		}
	}
}
