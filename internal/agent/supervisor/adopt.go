//go:build linux

package supervisor

import (
	"errors"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// recall takes over a predecessor's state of the member, and the instance that still runs. If the state can't be read,
// the member is left alone until it can.
func (m *member) recall(s *supervisor) {
	state, err := statedir.Read[statedir.State](s.dir.Document(statedir.States, m.name))
	switch {
	case err == nil:
		m.lost, m.state = false, state
	case errors.Is(err, engine.ErrNotFound):
		// Somebody may have moved a corrupt state away while the member runs.
		m.find(s)
		return
	default:
		if !m.lost {
			s.log.Error("can't read a member's state; leaving the member alone", "member", m.name, "error", err)
		}
		m.lost = true
	}
	if !m.lost {
		m.adopt(s)
	}
}

// find takes over the running instance of a member with an unknown state, if there is one.
func (m *member) find(s *supervisor) {
	state, err := s.launcher.find(m.name)
	m.lost = err != nil
	if err != nil {
		s.unseen(err, time.Now())
		return
	}
	if state.Instance != "" {
		m.state = state
	}
	m.adopt(s)
}

// adopt takes over the instance that a predecessor started, if it still runs; otherwise it handles its end.
func (m *member) adopt(s *supervisor) {
	if m.state.State != domain.StateRunning && (m.state.State != domain.StatePending || m.state.Instance == "") {
		return
	}
	spec, err := statedir.Read[domain.MemberSpec](s.dir.Document(statedir.Specs, m.name))
	if err != nil {
		// It is to be forgotten, or can't be read: either way the default grace period is long enough to end it.
		spec = domain.MemberSpec{GracePeriod: domain.DefaultGracePeriod}
	}
	i, err := s.launcher.adopt(&m.state, spec)
	switch {
	case errors.Is(err, errNeverStarted):
		m.state.Instance = ""
		return
	case errors.Is(err, errUnwatched):
		s.log.Error("can't watch a running member; leaving it alone", "member", m.name, "error", err)
		m.unread = true
		return
	case err != nil:
		s.unseen(err, time.Now())
		m.lost = true
		return
	}
	m.before = m.state
	if m.before.Instance = ""; m.state.State == domain.StatePending {
		m.before.LastError = "" // it said what the instance waits for
	}
	m.run(s, newRun(i, spec))
	m.unsaved = true
}
