package sweep

import (
	"maps"
	"slices"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

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
			if needs.GPUs == nil { // it holds all of it
				needs.GPUs = &domain.GPURequest{MemoryMiB: 10_000}
			}
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
	for _, m := range l.members { // that are about to end
		run := m.sweep.record.Runs()[m.key]
		if !m.observed.State.Ended() && (!run.Active() || run.Batch != m.batch) {
			take(m.at, domain.RunNeeds{Resources: m.sweep.spec.Resources, GPUs: m.sweep.spec.GPUs})
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
