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

// How long the rebalancer waits before it looks again: while a change is at work, and while none is; how long it
// doubts what it sees; and how long one look, with all that follows from it, may take.
const (
	atWorkPause = 500 * time.Millisecond
	idlePause   = 5 * time.Second
	doubtLimit  = 3 * time.Second
	turnLimit   = time.Minute
)

// remembered is how many changes are remembered that have come to an end.
const remembered = 64

// rebalancer brings the partitions of a cluster to where hooks want them. It remembers nothing that it could not do
// without: one that is started anew reads from the cluster how far its predecessor came, and is told by the hooks
// again.
type rebalancer struct {
	kafka *kafka
	// rate bounds what brokers send and receive for moves, in bytes a second each; 0 sets no bound.
	rate int64
	// atWork and idle are pauses. doubt is for how long it has to seem that a topic has more replicas than there are
	// brokers before that counts: where a move has just ended, a broker may not know yet that the old replica is gone.
	atWork, idle, doubt time.Duration

	wake chan struct{}

	mu      sync.Mutex
	plan    plan
	changes map[string]*change
	ended   []string // IDs of changes that have come to an end, the oldest first
	// version counts what hooks have told, and restoring reports whether the last of it was that a change is not
	// wanted.
	version   int
	restoring bool

	// What follows is the loop's own.

	// last is the move in progress, and dirty reports whether a throttle may be set.
	last  *move
	dirty bool
	// impossible is since when it has seemed that there are too few brokers.
	impossible time.Time
	moved      int64 // under mu
}

// change is what a hook has told.
type change struct {
	hook
	brokers []int32
	// most is how many partitions were not where they should be when it began, and away how many are not now.
	most, away int
	begun      bool
	waiting    string
	done       bool
	failed     *serve.Problem
}

// progress is how far a change is.
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

// tell begins a change, or goes on with one that is at work.
func (r *rebalancer) tell(ctx context.Context, h hook, brokers []int32) error {
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
	slog.Info("told", "id", h.ID, "hook", h.Hook, "from", h.From, "to", h.To, "brokers", brokers)
	r.forget(h.ID)
	r.changes[h.ID] = &change{hook: h, brokers: brokers}
	if h.leaves() {
		r.plan = r.plan.left(h.From, brokers)
	} else {
		r.plan = r.plan.joined(h.To)
	}
	r.toldAnew(false)
	return nil
}

// possible fails where a plan leaves fewer brokers than a topic has replicas.
func (r *rebalancer) possible(ctx context.Context, p plan) error {
	for deadline := time.Now().Add(r.doubt); ; {
		s, err := r.kafka.state(ctx)
		if err != nil {
			return err
		}
		if _, err = layout(s.factors(), p.brokers(s)); err == nil {
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

// callOff ends a change that is not wanted any more: brokers that were to leave get replicas again.
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
	r.toldAnew(true)
}

// toldAnew has the loop see to what a hook has told. Changes by which brokers were to leave that are wanted again are
// forgotten: whoever asks must not take these for empty. The caller holds the lock.
func (r *rebalancer) toldAnew(restore bool) {
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

// look returns how a change stands, if it is known.
func (r *rebalancer) look(id string) (change, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.changes[id]
	if c == nil {
		return change{}, false
	}
	return *c, true
}

// run sees to what hooks have told until ctx is done.
func (r *rebalancer) run(ctx context.Context) {
	for {
		pause, err := r.turn(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			slog.Warn("trying again", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		case <-time.After(pause):
		}
	}
}

// turn looks at the cluster, takes the next step, and returns how long to wait before the one after.
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
	want, err := layout(s.factors(), brokers)
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
		slog.Warn("moved bytes not counted", "error", err)
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
			slog.Warn("trying again", "error", err)
		}
	}
	if n.move == nil {
		return pause, nil
	}
	return pause, r.begin(ctx, s, *n.move)
}

// begin begins a move.
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

// count counts the bytes of the move that has come to its end.
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

// settle cleans up once nothing is moved any more: throttles go, and so do brokers that have left.
func (r *rebalancer) settle(ctx context.Context, s state, plan plan) error {
	if s.reassigning() > 0 {
		return nil
	}
	if r.dirty {
		if err := r.kafka.unthrottle(ctx, s); err != nil {
			return err
		}
		// Of a broker that is down, the throttle can be removed once it is up again.
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

// working returns the changes that are at work. The caller holds the lock.
func (r *rebalancer) working() func(func(*change) bool) {
	return func(yield func(*change) bool) {
		for _, id := range slices.Sorted(maps.Keys(r.changes)) {
			if c := r.changes[id]; !c.done && c.failed == nil && !yield(c) {
				return
			}
		}
	}
}

// note notes something of all changes that are at work.
func (r *rebalancer) note(what func(*change)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.working() {
		what(c)
	}
}

// finish ends all changes, unless hooks have told of others meanwhile.
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

// refuse ends changes that can't be made any more, as there are topics with more replicas by now. Their brokers stay.
func (r *rebalancer) refuse(version int, why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if version != r.version {
		return
	}
	r.restoring = false
	for c := range r.working() {
		slog.Warn("refused", "id", c.ID, "error", why)
		c.failed = serve.Problemf(http.StatusConflict, "%v", why)
		if c.leaves() {
			r.plan = r.plan.stayed(c.brokers)
		}
		r.end(c)
	}
}

// end remembers a change that has come to its end, and forgets the oldest of many.
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

// missing returns what changes wait for before partitions can be moved; "" where there is nothing.
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
