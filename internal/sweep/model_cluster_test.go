package sweep

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

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

// wish makes somebody ask for something for a run.
func (l *lab) wish(s *labSweep, key string, wish domain.RunWish) {
	if _, found := s.spec.Runs[key]; found {
		l.wishes++
		s.record.Set(key, Wished(s.doc, s.spec.Run(key), s.record.Runs()[key], wish, "ada", l.now()))
		l.wished, l.event = l.wished || wish == domain.WishCancel, true
	}
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
		if l.chance(30) { // destroyed, which ends its members, and created again, with a part of it left
			maps.DeleteFunc(l.members, func(_ string, m *labMember) bool { return m.sweep == s })
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
