//go:build linux

package supervisor

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/containers"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// lostExitCode is the exit code of an instance whose shell was killed before it could store one.
const lostExitCode = 128 + 9

// member is what the supervisor knows of a member.
type member struct {
	name string
	// spec is the specification in force, from a file with this stamp; nil if the member is to be forgotten.
	spec  *domain.MemberSpec
	stamp statedir.Stamp
	stop  *statedir.Stop
	// unread is set if the specification could not be read, and lost if the state could not: then the member is left as
	// it is.
	unread, lost bool

	state statedir.State
	// before is the state before the current instance was started, which is restored if the start fails.
	before statedir.State
	// unsaved is set if the state's file could not be written.
	unsaved bool
	// instance is nil if nothing runs.
	instance *run
	// retryAt is when to retry what failed for a reason outside the member, such as a full disk.
	retryAt   time.Time
	logSize   int64
	forgotten bool
}

func (m *member) group() string {
	if m.spec != nil {
		return m.spec.Group
	}
	return m.state.Group
}

// load reads the specification from its file.
func (m *member) load(s *supervisor, stamp statedir.Stamp) {
	spec, err := statedir.Read[domain.MemberSpec](s.dir.Document(statedir.Specs, m.name))
	if errors.Is(err, engine.ErrNotFound) {
		m.spec, m.unread = nil, false
		return
	}
	m.unread = err != nil
	if err != nil {
		s.log.Error("can't read a specification; leaving the member as it is", "member", m.name, "error", err)
		return
	}
	m.spec, m.stamp = &spec, stamp
	m.stop = nil
}

// resize applies the specification's limits to the running instance, if that is requested and possible.
func (m *member) resize(s *supervisor) {
	if m.unread || m.instance == nil || !m.current() || !m.spec.InPlace {
		return
	}
	i, can := m.instance.instance.(resizable)
	if !can {
		return
	}
	if err := i.resize(m.spec.Resources.Limits); err != nil {
		s.log.Error("can't change the limits of a running member; they apply from its next start", "member", m.name,
			"error", err)
	}
}

// loadStop reads the stop request.
func (m *member) loadStop(s *supervisor) {
	stop, err := statedir.Read[statedir.Stop](s.dir.Document(statedir.Stops, m.name))
	switch {
	case errors.Is(err, engine.ErrNotFound):
		m.stop = nil
	case err != nil:
		s.log.Error("can't read a stop request", "member", m.name, "error", err)
	default:
		m.stop = &stop
	}
}

// current reports whether the state is about the specification in force.
func (m *member) current() bool {
	return m.spec != nil && m.state.Run == m.spec.Run && m.state.Hash == m.spec.Hash
}

// stopped reports whether the member was asked to stop in its current run.
func (m *member) stopped() bool {
	return m.spec != nil && m.stop != nil && m.stop.Run == m.spec.Run
}

// wanted reports whether the running instance should keep running.
func (m *member) wanted() bool { return m.unread || m.lost || m.current() && !m.stopped() }

// end brings an instance that has exited, or should, as far towards its end as possible now. It returns when to call it
// again.
func (m *member) end(s *supervisor, now time.Time) (next time.Time) {
	i := m.instance
	switch {
	case i.exited:
		// What the command left running ends with it, as in a container.
		cleared, err := i.clear()
		if err != nil {
			return s.unseen(err, now)
		}
		if !cleared {
			return now.Add(sweep)
		}
		m.ended(s, now)
	case !m.wanted():
		next, err := i.end(now)
		if err != nil {
			return s.unseen(err, now)
		}
		return next
	}
	return time.Time{}
}

// unseen logs an error of the machine, and returns when to retry.
func (s *supervisor) unseen(err error, now time.Time) time.Time {
	s.log.Error("can't manage a member; retrying", "error", err)
	return now.Add(tick)
}

// ended records the end of the instance, and what follows by the restart rule.
func (m *member) ended(s *supervisor, now time.Time) {
	i := m.instance
	m.instance = nil
	r := i.result()
	if r.unstarted != nil {
		i.delete()
		if err := m.unstarted(s, r.unstarted, now); err != nil && !errors.Is(err, errNeverStarted) {
			m.postpone(s, err, now)
		}
		return
	}
	finished := now
	m.state.ExitCode, m.state.FinishedAt, m.state.LastError = &r.code, &finished, ""
	verdict := i.restart.Judge(r.code, m.state.Restarts)
	if m.state.Boot != s.boot && !r.settled {
		r.interrupted = "the machine was restarted"
	}
	switch {
	case r.interrupted != "":
		verdict.Reason += ": " + r.interrupted
		if i.restart.Condition != domain.RestartNever {
			verdict.State = domain.StatePending // not the member's fault, and no attempt by its restart rule
		} else if r.code == 0 {
			verdict = domain.Verdict{
				State: domain.StateFailed, Reason: "it was terminated with exit code 0: " + r.interrupted,
			}
		}
	case r.lost != "":
		verdict.Reason += ": " + r.lost
	}
	if r.outOf > 0 && r.code != 0 {
		m.state.OutOfMemory = &domain.OutOfMemory{At: finished, LimitMiB: r.outOf}
	}
	if r.note != "" && r.code != 0 {
		verdict.Reason += ": " + r.note
	}
	if (i.asked() || r.asked) && m.stopped() {
		verdict = domain.Verdict{State: domain.StateStopped}
		m.state.StopReason = m.stop.Reason
	}
	m.judge(verdict, now)
	m.save(s)
	i.delete()
}

func (m *member) judge(verdict domain.Verdict, now time.Time) {
	m.state.State = verdict.State
	m.state.LastError = verdict.Reason
	m.state.RestartAt = nil
	if verdict.State == domain.StateRestarting {
		due := now.Add(verdict.Delay)
		m.state.RestartAt = &due
	}
}

// settle brings a member without a running instance to the desired state, and returns when to call it again. It starts
// nothing while other members of its group are still being ended.
func (m *member) settle(s *supervisor, now time.Time, ending bool) (next time.Time) {
	switch {
	case m.unread || m.lost:
		return time.Time{}
	case m.spec == nil && !s.launcher.gone(m.name):
		return now.Add(sweep)
	case m.spec == nil:
		if err := s.dir.Forget(m.name); err != nil {
			s.log.Error("can't delete a member's files; retrying", "member", m.name, "error", err)
			return now.Add(tick)
		}
		m.forgotten = true
		return time.Time{}
	case !m.current():
		m.state = newState(*m.spec, m.stamp)
		m.unsaved = true
	}
	if m.stopped() && !m.state.State.Ended() {
		m.state.State, m.state.StopReason, m.state.RestartAt = domain.StateStopped, m.stop.Reason, nil
		m.unsaved = true
	}
	if m.due(now) && ending {
		return time.Time{} // the end of the others is an event
	}
	if m.due(now) {
		if m.retryAt.After(now) {
			return m.retryAt
		}
		if err := m.start(s, now); err != nil {
			return m.postpone(s, err, now)
		}
		if m.spec == nil {
			return now // withdrawn in the meantime, and to be forgotten
		}
	}
	if m.unsaved {
		m.save(s)
	}
	if m.state.RestartAt != nil {
		return *m.state.RestartAt
	}
	return time.Time{}
}

// postpone schedules another attempt after a start that failed for a reason outside the member, and returns its time.
func (m *member) postpone(s *supervisor, err error, now time.Time) time.Time {
	s.log.Error("can't start a member; retrying", "member", m.name, "error", err)
	m.state.LastError = err.Error()
	m.save(s)
	m.retryAt = now.Add(tick)
	return m.retryAt
}

// due reports whether an instance should be started.
func (m *member) due(now time.Time) bool {
	switch m.state.State {
	case domain.StatePending:
		return true
	case domain.StateRestarting:
		return m.state.RestartAt == nil || !m.state.RestartAt.After(now)
	}
	return false
}

func newState(spec domain.MemberSpec, stamp statedir.Stamp) statedir.State {
	return statedir.State{
		Name: spec.Name, Group: spec.Group, Role: spec.Role, Index: spec.Index, Host: spec.Host, Address: spec.Address,
		Hash: spec.Hash, Run: spec.Run, Spec: stamp, State: domain.StatePending,
	}
}

// start starts an instance. An error leaves everything unchanged; the command's own fault is not an error, but a
// failure of the member.
func (m *member) start(s *supervisor, now time.Time) error {
	m.before = m.state
	if m.state.State == domain.StateRestarting {
		m.state.Restarts++
	}
	// The mark is on disk before the first process has it, so that a successor knows what to look for.
	m.state.Instance, m.state.PID, m.state.StartTime, m.state.Boot = newInstanceID(), 0, 0, s.boot
	m.state.State, m.state.RestartAt, m.state.Container = domain.StatePending, nil, s.launcher.contained(*m.spec)
	// The exit code and error of the previous instance remain visible.
	m.state.StartedAt, m.state.FinishedAt = &now, nil
	if m.state.RunStartedAt == nil {
		m.state.RunStartedAt, m.state.LogFrom = &now, &now
	}
	m.keepLog(s, now) // so that the output of earlier instances can be distinguished
	if err := statedir.Write(s.dir.Document(statedir.States, m.name), m.state, statedir.Volatile); err != nil {
		m.state = m.before
		return err
	}
	// Whoever withdrew the specification before this moment may have found nothing of the member, and assumed that it
	// was gone.
	if _, err := os.Stat(s.dir.Document(statedir.Specs, m.name)); errors.Is(err, os.ErrNotExist) {
		m.state, m.spec = m.before, nil
		return nil
	}
	started, err := s.launcher.start(*m.spec, m.state.Instance)
	if err != nil {
		return m.unstarted(s, err, now)
	}
	m.run(s, newRun(started, *m.spec))
	m.save(s)
	return nil
}

// unstarted handles an instance that could not be started. The command's own fault is a failure of the member, and no
// error; any other error leaves everything unchanged.
func (m *member) unstarted(s *supervisor, err error, now time.Time) error {
	fault, own := errors.AsType[*commandError](err)
	switch {
	case own:
		code := commandFailed
		if refused, is := errors.AsType[*containers.RefusedError](fault); is {
			code = refused.Code
		}
		m.state.ExitCode, m.state.FinishedAt, m.state.Instance = &code, &now, ""
		verdict := m.restart().Judge(code, m.state.Restarts)
		verdict.Reason = fmt.Sprintf("it can't be started: %v", fault)
		m.judge(verdict, now)
		m.save(s)
		return nil
	case errors.Is(err, errUncertain):
		m.lost = true
	default:
		m.state = m.before
		m.unsaved = true
	}
	return err
}

// restart is the rule of the specification in force.
func (m *member) restart() domain.RestartRule {
	if m.spec == nil {
		return domain.RestartRule{Condition: domain.RestartNever} // it is to be forgotten
	}
	return m.spec.Restart
}

// run makes an instance the member's current one, and reports its start and end to the loop.
func (m *member) run(s *supervisor, r *run) {
	m.instance = r
	m.state.PID, m.state.StartTime = r.process().PID, r.process().StartTime
	if m.note(time.Now()); r.exited {
		return
	}
	go func() {
		select {
		case <-r.started():
		case <-r.ended():
		}
		s.news <- m.name
		<-r.ended()
		s.news <- m.name
	}()
}

// note records how far the current instance has come.
func (m *member) note(now time.Time) {
	r := m.instance
	r.exited = isClosed(r.ended())
	switch {
	case m.state.State != domain.StatePending || r.exited:
	case isClosed(r.started()):
		if r.waited {
			if m.state.RunStartedAt == nil || m.state.StartedAt == nil ||
				m.state.RunStartedAt.Equal(*m.state.StartedAt) {
				m.state.RunStartedAt = &now
			}
			m.state.StartedAt, m.state.LastError = &now, m.before.LastError
		}
		m.state.State, m.unsaved = domain.StateRunning, true
	default:
		r.waited = true
		if waits := r.waits(); waits != m.state.LastError {
			m.state.LastError, m.unsaved = waits, true
		}
	}
}

// save writes the state. If that fails, the next turn tries again: nothing is lost as long as this process lives, and
// what matters most (the instance's mark) was written before.
func (m *member) save(s *supervisor) {
	// The end of a member must survive a power loss, or it would run again.
	durability := statedir.Volatile
	if m.spec != nil && (m.state.State == domain.StateCompleted || m.state.State == domain.StateFailed) {
		durability = statedir.Durable
	}
	err := statedir.Write(s.dir.Document(statedir.States, m.name), m.state, durability)
	if err != nil && !m.unsaved {
		s.log.Error("can't save a member's state; retrying", "member", m.name, "error", err)
	}
	m.unsaved = err != nil
}
