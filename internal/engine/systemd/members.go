package systemd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/relay"
)

// Observe asks each host for its members.
func (e *Engine) Observe(ctx context.Context, group string) ([]domain.Observed, error) {
	return e.observe(ctx, group)
}

func (e *Engine) readMembers(ctx context.Context, group string) ([]domain.Observed, error) {
	p, err := e.whole(ctx)
	if err != nil {
		return nil, unlessGone(err)
	}
	found, failed := askAll(ctx, e, p, relay.Observe, group)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := e.remembered(ctx, group, found, failed); err != nil {
		return nil, err
	}
	return merged(found), nil
}

// merged returns the members of all hosts sorted by name. For one that is being moved, the host with the higher run or
// a running instance counts.
func merged(found map[string][]domain.Observed) []domain.Observed {
	all := map[string]domain.Observed{}
	for _, here := range found {
		for _, o := range here {
			if other, twice := all[o.Name]; !twice || o.Run > other.Run || o.Run == other.Run && o.Instance != "" {
				all[o.Name] = o
			}
		}
	}
	list := make([]domain.Observed, 0, len(all))
	for _, o := range all {
		list = append(list, o)
	}
	slices.SortFunc(list, func(a, b domain.Observed) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Specified returns the members as Observe does.
func (e *Engine) Specified(ctx context.Context, group string) ([]domain.Observed, error) {
	return e.Observe(ctx, group)
}

// Stage gives each host the specifications of its members.
func (e *Engine) Stage(ctx context.Context, specs []domain.MemberSpec) error {
	p, err := e.whole(ctx)
	if err != nil {
		return err
	}
	secrets, err := e.provideSecrets(ctx, specs)
	if err != nil {
		return err
	}
	logins, err := e.registryLogins(ctx, specs)
	if err != nil {
		return err
	}
	byHost := map[string][]domain.MemberSpec{}
	for _, spec := range specs {
		byHost[spec.Host] = append(byHost[spec.Host], spec)
	}
	return onHosts(p, byHost, func(name string, specs []domain.MemberSpec) error {
		e.staged.add(name, specs)
		staging := relay.Staging{Specs: specs, Secrets: secretsOf(secrets, specs), Registries: logins.of(specs)}
		_, err := askHost(ctx, e, p, name, relay.Stage, staging)
		return err
	})
}

// stagedHosts are the hosts on which something was staged, by start.
type stagedHosts struct {
	mu    sync.Mutex
	hosts map[relay.Starting]map[string]bool
}

// add records that a host is about to get specifications.
func (s *stagedHosts) add(host string, specs []domain.MemberSpec) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, spec := range specs {
		start := relay.Starting{Group: spec.Group, Run: spec.Run}
		if s.hosts == nil {
			s.hosts = map[relay.Starting]map[string]bool{}
		}
		if s.hosts[start] == nil {
			s.hosts[start] = map[string]bool{}
		}
		s.hosts[start][host] = true
	}
}

// besidesAway returns the errors of hosts, except those that are away and on which nothing was staged for the start.
func (s *stagedHosts) besidesAway(start relay.Starting, failed map[string]error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	failures := map[string]error{}
	for name := range s.hosts[start] {
		if err := failed[name]; away(err) {
			failures[name] = err
		}
	}
	return errors.Join(joined(failures), besidesAway(failed))
}

// done removes a completed start.
func (s *stagedHosts) done(start relay.Starting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.hosts, start)
}

// onHosts calls a function in parallel for each host in byHost. A host that is not in the cluster is an error.
func onHosts[T any](p place, byHost map[string]T, do func(name string, own T) error) error {
	_, failed := onAll(byHost, func(name string) (relay.None, error) {
		if _, known := p.hosts[name]; !known {
			return none, errors.New("not a host of the cluster")
		}
		return none, do(name, byHost[name])
	})
	return joined(failed)
}

// Start makes each host start what is staged there. A member that is still on another host is ended there first.
func (e *Engine) Start(ctx context.Context, group string, run int) error {
	p, err := e.whole(ctx)
	if err != nil {
		return err
	}
	start := relay.Starting{Group: group, Run: run}
	staged, failed := askAll(ctx, e, p, relay.Staged, start)
	if err := e.staged.besidesAway(start, failed); err != nil {
		return err
	}
	if err := e.endElsewhere(ctx, p, group, staged); err != nil {
		return err
	}
	if err := e.recordStart(ctx, group, staged); err != nil {
		return err
	}
	_, failed = askAll(ctx, e, p, relay.Start, start)
	if err := e.staged.besidesAway(start, failed); err != nil {
		return err
	}
	e.staged.done(start)
	return nil
}

// endElsewhere ends members that are about to start on another host, and returns when they have ended.
func (e *Engine) endElsewhere(ctx context.Context, p place, group string, staged map[string][]domain.Observed) error {
	found, failed := askAll(ctx, e, p, relay.Observe, group)
	if err := besidesAway(failed); err != nil {
		return err
	}
	starting, leaving := stagedMembers(staged), map[string][]string{}
	for from, here := range found {
		for _, o := range here {
			if to, starts := starting[o.Name]; starts && to.Host != from {
				leaving[from] = append(leaving[from], o.Name)
			}
		}
	}
	return onHosts(p, leaving, func(name string, members []string) error {
		_, err := askHost(ctx, e, p, name, relay.Evict, members)
		return err
	})
}

// Stop asks all hosts, as only they know which members they have.
func (e *Engine) Stop(ctx context.Context, runs map[string]int, reason domain.StopReason) error {
	return everywhere(ctx, e, relay.Stop, relay.Stopping{Runs: runs, Reason: reason})
}

// Remove asks all hosts.
func (e *Engine) Remove(ctx context.Context, names []string) error {
	if err := e.forget(ctx, names); err != nil {
		return unlessGone(err)
	}
	return everywhere(ctx, e, relay.Remove, names)
}

// Pause pauses members.
func (e *Engine) Pause(ctx context.Context, names []string) error {
	return everywhere(ctx, e, relay.Pause, names)
}

// Continue resumes paused members.
func (e *Engine) Continue(ctx context.Context, names []string) error {
	return everywhere(ctx, e, relay.Continue, names)
}

// everywhere makes a call to all hosts that are not away; without a cluster it does nothing.
func everywhere[Q any](ctx context.Context, e *Engine, call relay.Call[Q, relay.None], question Q) error {
	p, err := e.whole(ctx)
	if err != nil {
		return unlessGone(err)
	}
	_, failed := askAll(ctx, e, p, call, question)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return besidesAway(failed)
}

func unlessGone(err error) error {
	if errors.Is(err, engine.ErrNotFound) {
		return nil
	}
	return err
}

// hasNone reports whether an error means that a host does not have what was asked for.
func hasNone(err error) bool {
	return errors.Is(err, engine.ErrNotFound) || errors.Is(err, relay.ErrOutside)
}

// Logs returns the end of a member's log, from whichever host has it.
func (e *Engine) Logs(ctx context.Context, member string, options engine.LogOptions) ([]string, error) {
	p, err := e.whole(ctx)
	if err != nil {
		return nil, err
	}
	found, failed := askAll(ctx, e, p, relay.Logs, relay.LogQuery{Member: member, Options: options})
	for _, lines := range found {
		return lines, nil
	}
	if err := besides(failed, hasNone); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("member %q of cluster %q: %w", member, e.ref.Name, engine.ErrNotFound)
}
