package sweep

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

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
			m := l.members[domain.RunName(s.spec.Name, key)]
			if m == nil || m.observed.State.Ended() || run.Assignment == nil {
				s.record.Forget(key)
			} else {
				s.record.Set(key, Removed(run, now))
			}
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
		run := s.record.Runs()[m.key]
		if run.Active() && run.Batch == m.batch {
			continue
		}
		s.leaving[m.key] = LeavingAt(m.observed, run)
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
