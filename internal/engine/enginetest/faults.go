package enginetest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// ErrDead is returned by every call of a [Mortal] engine after its death.
var ErrDead = errors.New("the process that called died")

// OneByOne returns an engine that splits its calls for several members into calls for one member each, so that a caller
// can die between them.
func OneByOne(e engine.Engine) engine.Engine { return oneByOne{e} }

type oneByOne struct{ engine.Engine }

// Unwrap returns the wrapped engine, for [engine.Files].
func (o oneByOne) Unwrap() engine.Engine { return o.Engine }

func (o oneByOne) Stage(ctx context.Context, specs []domain.MemberSpec) error {
	return each(specs, func(spec []domain.MemberSpec) error { return o.Engine.Stage(ctx, spec) })
}

func (o oneByOne) Stop(ctx context.Context, runs map[string]int, reason domain.StopReason) error {
	return each(slices.Sorted(maps.Keys(runs)), func(name []string) error {
		return o.Engine.Stop(ctx, map[string]int{name[0]: runs[name[0]]}, reason)
	})
}

// Remove removes the last one first: of members without an identity, those that stay are always the first.
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

// Mortal is an engine whose caller dies after a number of changes: from then on no call reaches the engine, and the
// caller's locks are gone.
type Mortal struct {
	engine.Engine
	// Immortal is the engine for callers that do not die.
	Immortal engine.Engine

	// last is the number of changes after which the caller dies.
	last int

	mutex   sync.Mutex
	changes int
	calls   []string
	locks   []func() error
}

// NewMortal returns an engine whose caller dies after this number of changes.
func NewMortal(e engine.Engine, changes int) *Mortal {
	m := &Mortal{Immortal: e, last: changes}
	m.Engine = OneByOne(engine.Intercept(held{e, m}, func(_ context.Context, call engine.Call, do func() error) error {
		if m.dead() {
			return ErrDead
		}
		err := do()
		m.made(call, err)
		return err
	}))
	return m
}

// Unwrap returns the wrapped engine, for [engine.Files].
func (m *Mortal) Unwrap() engine.Engine { return m.Engine }

// Calls returns the names of the calls that were made.
func (m *Mortal) Calls() []string {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return slices.Clone(m.calls)
}

// Changes returns how many changes were made.
func (m *Mortal) Changes() int {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.changes
}

// dead reports whether the caller has died, and releases its locks if so.
func (m *Mortal) dead() bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.changes < m.last {
		return false
	}
	for _, release := range m.locks {
		_ = release()
	}
	m.locks = nil
	return true
}

// made counts a call if it succeeded: a lock that somebody else holds is no change.
func (m *Mortal) made(call engine.Call, err error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.calls = append(m.calls, call.Name)
	if err == nil && call.Changes {
		m.changes++
	}
}

// held records the locks that are taken, to release them at the death of their holder.
type held struct {
	engine.Engine
	mortal *Mortal
}

// Unwrap returns the wrapped engine, for [engine.Files].
func (h held) Unwrap() engine.Engine { return h.Engine }

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

// Hold takes its lock by [held.Lock].
func (h held) Hold(ctx context.Context, name string, holder engine.Holder) (context.Context, func() error, error) {
	return engine.HoldFor(ctx, h, name, holder)
}
