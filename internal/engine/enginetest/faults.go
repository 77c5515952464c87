package enginetest

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// ErrDead is returned by every call of a [Mortal] engine after its death.
var ErrDead = errors.New("the process that called died")

// OneByOne returns an engine that makes its calls for several members as calls for one member each, so that a caller
// can die in the middle of them.
func OneByOne(e engine.Engine) engine.Engine { return oneByOne{e} }

type oneByOne struct{ engine.Engine }

func (o oneByOne) Stage(ctx context.Context, specs []domain.MemberSpec) error {
	return each(specs, func(spec []domain.MemberSpec) error { return o.Engine.Stage(ctx, spec) })
}

func (o oneByOne) Stop(ctx context.Context, names []string, reason domain.StopReason) error {
	return each(names, func(name []string) error { return o.Engine.Stop(ctx, name, reason) })
}

// Remove takes the last first: of members without an identity, those that stay are always the first.
func (o oneByOne) Remove(ctx context.Context, names []string) error {
	names = slices.Clone(names)
	slices.Reverse(names)
	return each(names, func(name []string) error { return o.Engine.Remove(ctx, name) })
}

func each[T any](items []T, do func([]T) error) error {
	for i := range items {
		if err := do(items[i : i+1]); err != nil {
			return err
		}
	}
	return nil
}

// Mortal is an engine whose caller dies after a number of calls: from then on nothing reaches the engine any more,
// and the caller's locks are gone.
type Mortal struct {
	engine.Engine
	// Immortal is the engine for callers that do not die.
	Immortal engine.Engine

	mutex  sync.Mutex
	left   int
	counts func(call string) bool
	calls  []string
	locks  []func() error
}

// NewMortal returns an engine whose caller dies when it has made this number of calls.
func NewMortal(e engine.Engine, calls int) *Mortal {
	return newMortal(e, calls, func(string) bool { return true })
}

// NewMortalByChanges returns an engine whose caller dies when it has made this number of calls that change something.
func NewMortalByChanges(e engine.Engine, changes int) *Mortal {
	return newMortal(e, changes, engine.Changes)
}

func newMortal(e engine.Engine, calls int, counts func(call string) bool) *Mortal {
	m := &Mortal{Immortal: e, left: calls, counts: counts}
	m.Engine = OneByOne(engine.Intercept(held{e, m}, func(_ context.Context, call string, do func() error) error {
		if err := m.live(call); err != nil {
			return err
		}
		return do()
	}))
	return m
}

// Calls returns the names of the calls that were made.
func (m *Mortal) Calls() []string {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return append([]string(nil), m.calls...)
}

// live counts a call, and returns ErrDead where its caller is dead.
func (m *Mortal) live(call string) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.left <= 0 {
		for _, release := range m.locks {
			_ = release()
		}
		m.locks = nil
		return ErrDead
	}
	if m.counts(call) {
		m.left--
	}
	m.calls = append(m.calls, call)
	return nil
}

// held remembers the locks that are taken, to be released at the death of their holder.
type held struct {
	engine.Engine
	mortal *Mortal
}

func (h held) Lock(ctx context.Context, name string, holder engine.Holder) (func() error, error) {
	release, err := h.Engine.Lock(ctx, name, holder)
	if err != nil {
		return nil, err
	}
	once := sync.OnceValue(release)
	h.mortal.mutex.Lock()
	defer h.mortal.mutex.Unlock()
	h.mortal.locks = append(h.mortal.locks, once)
	return once, nil
}
