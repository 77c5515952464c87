//go:build linux

package supervisor

import (
	"context"
	"log/slog"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// mixed is the launcher of a host: members with an image run as containers, and others as units.
type mixed struct {
	units      *transient
	containers *contained
}

func newMixed(ctx context.Context, dir statedir.Dir, log *slog.Logger, boot string) (*mixed, error) {
	units, err := newTransient(ctx, dir, log, boot)
	if err != nil {
		return nil, err
	}
	containers, err := newContained(ctx, dir, log, boot, units.manager)
	return &mixed{units, containers}, err
}

func (m *mixed) turn() { m.units.turn() }

func (m *mixed) contained(spec domain.MemberSpec) bool { return spec.Image != "" }

func (m *mixed) gone(member string) bool { return m.containers.gone(member) }

func (m *mixed) start(spec domain.MemberSpec, id string) (instance, error) {
	if m.contained(spec) {
		return m.containers.start(spec, id), nil
	}
	return m.units.start(spec, id)
}

func (m *mixed) adopt(state *statedir.State, spec domain.MemberSpec) (instance, error) {
	if state.Container {
		return m.containers.adopt(*state, spec), nil
	}
	return m.units.adopt(state, spec)
}

func (m *mixed) find(member string) (statedir.State, error) {
	state, err := m.units.find(member)
	if err == nil && state.Instance == "" {
		state, err = m.containers.find(member)
	}
	return state, err
}
