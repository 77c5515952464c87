package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/modules/kafka/internal/serve"
)

// How long the rebalancer pauses between turns with and without a change in progress, how long it doubts what it sees,
// and how long a turn may take.
const (
	atWorkPause = 500 * time.Millisecond
	idlePause   = 5 * time.Second
	doubtLimit  = 3 * time.Second
	turnLimit   = time.Minute
)

// remembered is how many ended changes are remembered.
const remembered = 64

// rebalancer moves a cluster's partitions to where the hooks want them. It needs no memory of its own: after a restart
// it reads from the cluster how far its predecessor got, and the hooks call again.
type rebalancer struct {
	kafka *kafka
	// rate limits the traffic of each broker for moves, in bytes per second sent and received; 0 is no limit.
	rate int64
	// atWork and idle are pauses. doubt is how long a topic has to appear to have more replicas than there are brokers
	// before that is believed: after a move, a broker may still report the old replica.
	atWork, idle, doubt time.Duration

	wake chan struct{}

	mu      sync.Mutex
	plan    plan
	changes map[string]*change
	ended   []string // IDs of ended changes, oldest first
	// version counts the hooks' calls; restoring reports whether a change was called off and is not undone yet.
	version   int
	restoring bool

	// Used by the loop only.

	// last is the move in progress; dirty reports whether a throttle may be set.
	last  *move
	dirty bool
	// impossible is since when there appear to be too few brokers.
	impossible time.Time
	moved      int64 // under mu
}

// change is a change requested by a hook.
type change struct {
	hook
	brokers []int32
	// most is the number of misplaced partitions at the beginning, away the current number.
	most, away int
	begun      bool
	waiting    string
	done       bool
	failed     *serve.Problem
}

// progress describes how far a change is.
func (c *change) progress() string {
	switch {
	case c.waiting != "":
		return c.waiting
	case !c.begun:
		return "starting"
	}
	return fmt.Sprintf("%d of %d partitions", c.most-c.away, c.most)
}

func newRebalancer(k *kafka, rate int64) *rebalancer {
	return &rebalancer{
		kafka: k, rate: rate, atWork: atWorkPause, idle: idlePause, doubt: doubtLimit,
		wake: make(chan struct{}, 1), changes: map[string]*change{},
		dirty: true, // a predecessor may have been killed before it removed its throttle
	}
}

// start begins a change, or continues one in progress.
func (r *rebalancer) start(ctx context.Context, h hook, brokers []int32) error {
	r.mu.Lock()
	plan := r.plan
	r.mu.Unlock()
	if h.leaves() {
		if err := r.possible(ctx, plan.left(h.From, brokers)); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.changes[h.ID]; known != nil && !known.done && known.failed == nil {
		return nil
	}
	slog.Info("hook called", "id", h.ID, "hook", h.Hook, "from", h.From, "to", h.To, "brokers", brokers)
	r.forget(h.ID)
	r.changes[h.ID] = &change{hook: h, brokers: brokers}
	if h.leaves() {
		r.plan = r.plan.left(h.From, brokers)
	} else {
		r.plan = r.plan.joined(h.To)
	}
	r.planChanged(false)
	return nil
}

// possible fails if a plan leaves fewer brokers than a topic has replicas.
func (r *rebalancer) possible(ctx context.Context, p plan) error {
	for deadline := time.Now().Add(r.doubt); ; {
		s, err := r.kafka.state(ctx)
		if err != nil {
			return err
		}
		if _, err = layout(s.factors(), p.brokers(s), s.racks); err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return serve.Problemf(http.StatusConflict, "%v", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(r.atWork):
		}
	}
}

// callOff ends a change that is no longer wanted: brokers that were leaving get replicas again.
func (r *rebalancer) callOff(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	slog.Info("called off", "id", id)
	if c := r.changes[id]; c != nil {
		if c.leaves() {
			r.plan = r.plan.stayed(c.brokers)
		}
		r.forget(id)
	}
	r.planChanged(true)
}

// planChanged wakes the loop after a hook's call. It forgets removals of brokers that are wanted again, since they must
// not be taken for empty. The caller holds the lock.
func (r *rebalancer) planChanged(restore bool) {
	for id, c := range r.changes {
		if c.leaves() && slices.ContainsFunc(c.brokers, func(b int32) bool { return !r.plan.leaving[b] }) {
			r.forget(id)
		}
	}
	r.version++
	r.restoring = r.restoring || restore
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// look returns the state of a change, if it is known.
func (r *rebalancer) look(id string) (change, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.changes[id]
	if c == nil {
		return change{}, false
	}
	return *c, true
}

// run carries out the changes until ctx is done.
func (r *rebalancer) run(ctx context.Context) {
	for {
		pause, err := r.turn(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			slog.Warn("retrying", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		case <-time.After(pause):
		}
	}
}

// turn reads the cluster, takes the next step, and returns the pause before the next turn.
func (r *rebalancer) turn(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, turnLimit)
	defer cancel()
	r.mu.Lock()
	plan, version, restoring, working := r.plan, r.version, r.restoring, slices.Collect(r.working())
	r.mu.Unlock()
	pause := r.idle
	if len(working) > 0 || restoring {
		pause = r.atWork
	}
	s, err := r.kafka.state(ctx)
	if err != nil {
		return r.atWork, err
	}
	if len(working) == 0 && !restoring {
		return pause, r.settle(ctx, s, plan)
	}
	if missing := missing(working, s); missing != "" {
		r.note(func(c *change) { c.waiting = missing })
		return pause, nil
	}
	brokers := plan.brokers(s)
	want, err := layout(s.factors(), brokers, s.racks)
	if err != nil {
		if r.impossible.IsZero() {
			r.impossible = time.Now()
		} else if time.Since(r.impossible) > r.doubt {
			r.refuse(version, err)
		}
		return pause, nil
	}
	r.impossible = time.Time{}
	n := next(s, want)
	r.note(func(c *change) {
		if !c.begun {
			c.begun, c.most = true, n.away
		}
		c.waiting, c.away, c.most = "", n.away, max(c.most, n.away)
	})
	if err := r.count(ctx, s); err != nil {
		slog.Warn("can't count the moved bytes", "error", err)
	}
	if n.done {
		if err := r.settle(ctx, s, plan); err != nil {
			return pause, err
		}
		r.finish(version)
		return 0, nil
	}
	if len(n.elect) > 0 {
		if err := r.kafka.elect(ctx, n.elect); err != nil {
			slog.Warn("retrying", "error", err)
		}
	}
	if n.move == nil {
		return pause, nil
	}
	return pause, r.begin(ctx, s, *n.move)
}

// begin starts a move.
func (r *rebalancer) begin(ctx context.Context, s state, m move) error {
	r.dirty = true
	if err := r.kafka.throttle(ctx, s.alive(), m, r.rate); err != nil {
		return err
	}
	slog.Info("moving", "partition", m.partition.String(), "from", m.from, "to", m.to)
	if err := r.kafka.reassign(ctx, m); err != nil {
		return err
	}
	r.last = &m
	return nil
}

// count adds the bytes of the last move once it has ended.
func (r *rebalancer) count(ctx context.Context, s state) error {
	if r.last == nil || s.partitions[r.last.partition].moving() {
		return nil
	}
	m := *r.last
	r.last = nil
	bytes, err := r.kafka.size(ctx, m.partition, m.adds())
	r.mu.Lock()
	defer r.mu.Unlock()
	r.moved += bytes
	return err
}

// settle cleans up once nothing is being moved: it removes throttles, and unregisters brokers that have left.
func (r *rebalancer) settle(ctx context.Context, s state, plan plan) error {
	if s.reassigning() > 0 {
		return nil
	}
	if r.dirty {
		if err := r.kafka.unthrottle(ctx, s); err != nil {
			return err
		}
		// The throttle of a broker that is down can only be removed once it is up again.
		r.dirty = len(s.alive()) < len(s.brokers)
	}
	for _, b := range plan.gone(s) {
		if err := r.kafka.unregister(ctx, b); err != nil {
			return err
		}
		slog.Info("unregistered", "broker", b)
		r.mu.Lock()
		r.plan = r.plan.stayed([]int32{b})
		r.mu.Unlock()
	}
	return nil
}

// working returns the changes in progress. The caller holds the lock.
func (r *rebalancer) working() func(func(*change) bool) {
	return func(yield func(*change) bool) {
		for _, id := range slices.Sorted(maps.Keys(r.changes)) {
			if c := r.changes[id]; !c.done && c.failed == nil && !yield(c) {
				return
			}
		}
	}
}

// note updates all changes in progress.
func (r *rebalancer) note(what func(*change)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.working() {
		what(c)
	}
}

// finish ends all changes, unless hooks have called meanwhile.
func (r *rebalancer) finish(version int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if version != r.version {
		return
	}
	r.restoring = false
	for c := range r.working() {
		slog.Info("done", "id", c.ID, "moved", c.most)
		c.done = true
		r.end(c)
	}
}

// refuse ends changes that have become impossible, because topics now have more replicas. Their brokers stay.
func (r *rebalancer) refuse(version int, why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if version != r.version {
		return
	}
	r.restoring = false
	for c := range r.working() {
		slog.Warn("change refused", "id", c.ID, "error", why)
		c.failed = serve.Problemf(http.StatusConflict, "%v", why)
		if c.leaves() {
			r.plan = r.plan.stayed(c.brokers)
		}
		r.end(c)
	}
}

// end remembers an ended change, and forgets the oldest beyond the limit.
func (r *rebalancer) end(c *change) {
	if r.ended = append(r.ended, c.ID); len(r.ended) > remembered {
		r.forget(r.ended[0])
	}
}

// forget forgets a change. The caller holds the lock.
func (r *rebalancer) forget(id string) {
	delete(r.changes, id)
	r.ended = slices.DeleteFunc(r.ended, func(ended string) bool { return ended == id })
}

// missing returns what changes wait for before partitions can be moved; "" if for nothing.
func missing(working []*change, s state) string {
	for _, c := range working {
		if c.leaves() {
			continue
		}
		for _, b := range c.brokers {
			if !s.brokers[b] {
				return fmt.Sprintf("waiting for broker %d", b)
			}
		}
		if alive := len(s.alive()); len(c.brokers) == 0 && alive < c.To {
			return fmt.Sprintf("waiting for broker %d of %d", alive+1, c.To)
		}
	}
	return ""
}
