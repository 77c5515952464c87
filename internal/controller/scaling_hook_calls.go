package controller

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// keepStanding is how often a hook's progress is stored: a Swarm keeps written data in its
// managers' memory for a while.
const keepStanding = 30 * time.Second

// hookCalls are the unfinished hook calls of a policy, as stored with the cluster. They are safe for concurrent use.
type hookCalls struct {
	items engine.Store

	mu     sync.Mutex
	stored domain.HookCallsDocument
	// now are the calls with their latest progress.
	now  []domain.HookCall
	kept time.Time
	// over is set once the policy is gone and nothing is stored any more.
	over bool
	// overtaken is the conflict after somebody else has stored calls, so that this controller is no longer in charge.
	overtaken error
}

// errPolicyOver is the error of a hook call whose policy is gone.
var errPolicyOver = &reconcile.HeldError{Why: "the policy has ended"}

func newHookCalls(items engine.Store, policy string) *hookCalls {
	return &hookCalls{items: items, stored: domain.HookCallsDocument{Policy: policy}}
}

// loadHookCalls reads the hook calls of all policies, by policy key. Documents that can't be read are
// reported in unread, and skipped.
func loadHookCalls(ctx context.Context, items engine.Store) (known map[string]*hookCalls, unread, err error) {
	found, err := items.List(ctx, new(domain.HookCallsDocument).Kind())
	if err != nil {
		return nil, nil, fmt.Errorf("reading hook calls: %w", err)
	}
	known = map[string]*hookCalls{}
	for _, item := range found {
		c := newHookCalls(items, item.Name)
		if err := json.Unmarshal(item.Data, &c.stored); err != nil {
			unread = errors.Join(unread, fmt.Errorf("%s: %w", item.Key, err))
			c.stored.Calls = nil
		}
		c.stored.Policy, c.stored.Revision = item.Name, item.Revision
		c.now = slices.Clone(c.stored.Calls)
		known[item.Name] = c
	}
	return known, unread, nil
}

// of returns the calls for a moment, oldest first.
func (c *hookCalls) of(moment domain.HookMoment) []domain.HookCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.now), func(call domain.HookCall) bool { return call.Moment != moment })
}

// put stores a call, replacing the one with its ID.
func (c *hookCalls) put(ctx context.Context, call domain.HookCall) error {
	return c.change(ctx, func(calls []domain.HookCall) []domain.HookCall {
		if i := indexOf(calls, call.ID); i >= 0 {
			calls[i] = call
			return calls
		}
		return append(calls, call)
	})
}

// remove deletes a call.
func (c *hookCalls) remove(ctx context.Context, id string) error {
	return c.change(ctx, func(calls []domain.HookCall) []domain.HookCall {
		return slices.DeleteFunc(calls, func(call domain.HookCall) bool { return call.ID == id })
	})
}

// removed deletes a call about a removal that was carried out. Even if that can't be stored, the hook's work is not
// cancelled any more: to the hook, that would mean that the members stay.
func (c *hookCalls) removed(ctx context.Context, id string) error {
	c.mu.Lock()
	if i := indexOf(c.now, id); i >= 0 {
		c.now[i].Location = ""
	}
	c.mu.Unlock()
	return c.remove(ctx, id)
}

// change stores modified calls. If that fails, the calls stay as they were.
func (c *hookCalls) change(ctx context.Context, change func(calls []domain.HookCall) []domain.HookCall) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return errPolicyOver
	}
	next := c.stored
	next.Calls = change(slices.Clone(c.now))
	stored, err := engine.Put(ctx, c.items, next)
	if err != nil {
		err = fmt.Errorf("storing hook calls: %w", err)
		if errors.Is(err, engine.ErrConflict) {
			c.overtaken = err
		}
		return err
	}
	c.stored, c.now, c.kept = stored, slices.Clone(stored.Calls), time.Now()
	return nil
}

// note updates the state of a call. It is stored at once if a successor has to know it, and
// otherwise from time to time.
func (c *hookCalls) note(ctx context.Context, call domain.HookCall) error {
	c.mu.Lock()
	if i := indexOf(c.now, call.ID); i >= 0 {
		c.now[i] = call
	}
	i := indexOf(c.stored.Calls, call.ID)
	matters := i < 0 || c.stored.Calls[i].Location != call.Location ||
		c.stored.Calls[i].Progress == "" && call.Progress != "" ||
		call.Location != "" && c.stored.Calls[i].AtWork() != call.AtWork()
	due := matters || time.Since(c.kept) >= keepStanding
	c.mu.Unlock()
	if !due {
		return nil
	}
	return c.put(ctx, call)
}

// conflict returns [engine.ErrConflict] if somebody else has stored calls of the policy, or the answer to a write was
// lost: no further write can succeed then.
func (c *hookCalls) conflict() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.overtaken
}

// end deletes all calls of a deleted policy, and returns them.
func (c *hookCalls) end(ctx context.Context) ([]domain.HookCall, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stored.Revision > 0 {
		if err := engine.Delete[domain.HookCallsDocument](ctx, c.items, c.stored.Policy); err != nil {
			return nil, err
		}
	}
	ended := c.now
	c.over, c.now = true, nil
	return ended, nil
}

// atWork describes the hooks at work and their progress, and returns the change ID of the first one, or "".
func (c *hookCalls) atWork() (id, description string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for _, call := range c.now {
		if call.AtWork() {
			id, all = cmp.Or(id, call.ID), append(all, call.String())
		}
	}
	return id, strings.Join(all, "; ")
}

func indexOf(calls []domain.HookCall, id string) int {
	return slices.IndexFunc(calls, func(call domain.HookCall) bool { return call.ID == id })
}
