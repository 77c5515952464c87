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

// keepStanding is how often it is stored what a hook says of its progress, and when it was told last: a Swarm keeps
// what is written in the memory of its managers for a while.
const keepStanding = 30 * time.Second

// hookCalls are the calls of a policy's hooks that have not come to their end, as they are stored with the cluster.
// They may be used by several goroutines.
type hookCalls struct {
	items engine.Store

	mu     sync.Mutex
	stored domain.HookCallsDocument
	// now are the calls with what they have said since.
	now  []domain.HookCall
	kept time.Time
	// over tells that the policy is gone, and nothing is stored any more.
	over bool
	// overtaken is the error of a write on top of what somebody else has stored: who finds that is no longer the one
	// that decides.
	overtaken error
}

// errPolicyOver is of a call of a policy that is gone.
var errPolicyOver = &reconcile.HeldError{Why: "the policy has ended meanwhile"}

func newHookCalls(items engine.Store, policy string) *hookCalls {
	return &hookCalls{items: items, stored: domain.HookCallsDocument{Policy: policy}}
}

// loadHookCalls reads the calls of all policies, by the policies' keys. Unread says which can't be read: it goes on
// without them.
func loadHookCalls(ctx context.Context, items engine.Store) (known map[string]*hookCalls, unread, err error) {
	found, err := items.List(ctx, new(domain.HookCallsDocument).Kind())
	if err != nil {
		return nil, nil, fmt.Errorf("which hooks are at work can't be read: %w", err)
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

// of returns the calls of a moment, the oldest first.
func (c *hookCalls) of(moment domain.HookMoment) []domain.HookCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.now), func(call domain.HookCall) bool { return call.Moment != moment })
}

// put stores a call, in the place of the one with its ID.
func (c *hookCalls) put(ctx context.Context, call domain.HookCall) error {
	return c.change(ctx, func(calls []domain.HookCall) []domain.HookCall {
		if i := indexOf(calls, call.ID); i >= 0 {
			calls[i] = call
			return calls
		}
		return append(calls, call)
	})
}

// remove forgets a call.
func (c *hookCalls) remove(ctx context.Context, id string) error {
	return c.change(ctx, func(calls []domain.HookCall) []domain.HookCall {
		return slices.DeleteFunc(calls, func(call domain.HookCall) bool { return call.ID == id })
	})
}

// change stores other calls. Where they can't be stored, they are as they were.
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
		err = fmt.Errorf("which hooks are at work can't be stored: %w", err)
		if errors.Is(err, engine.ErrConflict) {
			c.overtaken = err
		}
		return err
	}
	c.stored, c.now, c.kept = stored, slices.Clone(stored.Calls), time.Now()
	return nil
}

// note takes notice of how a call stands. It is stored at once where whoever goes on with it has to know, and else from
// time to time.
func (c *hookCalls) note(ctx context.Context, call domain.HookCall) error {
	c.mu.Lock()
	if i := indexOf(c.now, call.ID); i >= 0 {
		c.now[i] = call
	}
	i := indexOf(c.stored.Calls, call.ID)
	matters := i < 0 || c.stored.Calls[i].Location != call.Location || c.stored.Calls[i].Progress == "" && call.Progress != ""
	due := matters || time.Since(c.kept) >= keepStanding
	c.mu.Unlock()
	if !due {
		return nil
	}
	return c.put(ctx, call)
}

// conflict is [engine.ErrConflict] where somebody else has stored calls of the policy meanwhile, or the answer to a
// write was lost: no other one can be made then.
func (c *hookCalls) conflict() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.overtaken
}

// end forgets all calls, as the policy is gone, and returns them.
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

// atWork says which hooks are at work, and how they get on, and returns the ID of the change of the first; "" where
// none is.
func (c *hookCalls) atWork() (id, said string) {
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
