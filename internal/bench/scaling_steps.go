//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// lengths is a queue that serves its length over HTTP, and records when it was read.
type lengths struct {
	server *http.Server
	url    string

	mu     sync.Mutex
	length int
	asked  []time.Time
}

// newLengths returns a queue of length one.
func newLengths() (*lengths, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	q := &lengths{url: "http://" + listener.Addr().String(), length: 1}
	q.server = &http.Server{Handler: http.HandlerFunc(q.answer), ReadHeaderTimeout: time.Second}
	go func() { _ = q.server.Serve(listener) }() // until closed
	return q, nil
}

func (q *lengths) close() error { return q.server.Close() }

func (q *lengths) answer(w http.ResponseWriter, _ *http.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.asked = append(q.asked, time.Now())
	_, _ = fmt.Fprintf(w, `{"length": %d}`, q.length) // a client that doesn't wait asks again
}

// set sets the queue's length, and returns the moment from which on it is served.
func (q *lengths) set(length int) time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.length = length
	return time.Now()
}

// askedSince returns when the queue's length was read from a moment on.
func (q *lengths) askedSince(t time.Time) []time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, at := range q.asked {
		if !at.Before(t) {
			return append([]time.Time(nil), q.asked[i:]...)
		}
	}
	return nil
}

// source returns the queue as a policy's source.
func (q *lengths) source() domain.ScalingSource {
	return domain.ScalingSource{Queue: &domain.QueueSource{HTTP: &domain.HTTPQueue{URL: q.url, Path: "length"}}}
}

// step is when things happened after the queue had grown.
type step struct {
	// grown is when the queue grew, asked when its length was next read, and decided when the policy decided on that.
	grown, asked, decided time.Time
	// written is when the count was stored, running when the member ran.
	written, running time.Time
}

// stepPatience limits the wait for the results of a step.
const stepPatience = 2 * time.Minute

// steps makes the queue grow by one repeatedly, each time in a different part of the policy's interval.
func (s *scalingBench) steps(ctx context.Context) ([]step, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, err := s.engine.Watch(ctx)
	if err != nil {
		return nil, err
	}
	var steps []step
	for i := range scalingSteps {
		if err := pause(ctx, time.Second+time.Second*time.Duration(i)/scalingSteps); err != nil {
			return nil, err
		}
		one := step{grown: s.queue.set(i + 2)}
		err := await(ctx, events, fmt.Sprintf("count %d", i+2), func() (bool, error) {
			doc, err := engine.Get[domain.GroupDocument](ctx, s.engine, probeGroup)
			one.written, one.decided = time.Now(), doc.Scaled[probeRole].At
			return doc.Counts[probeRole] == i+2, err
		})
		if err != nil {
			return nil, err
		}
		for _, at := range s.queue.askedSince(one.grown) {
			if at.Before(one.decided) {
				one.asked = at
			}
		}
		member := domain.MemberName(probeGroup, probeRole, i+1)
		err = await(ctx, events, "member "+member, func() (bool, error) {
			state, err := statedir.Read[statedir.State](s.dir.Document(statedir.States, member))
			if errors.Is(err, engine.ErrNotFound) {
				return false, nil
			}
			if state.State == domain.StateRunning && state.StartedAt != nil {
				one.running = *state.StartedAt
			}
			return !one.running.IsZero(), err
		})
		if err != nil {
			return nil, err
		}
		steps = append(steps, one)
	}
	return steps, nil
}

// await returns once a condition holds, which it checks after each change of the cluster.
func await(ctx context.Context, events <-chan struct{}, what string, is func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, stepPatience, fmt.Errorf("no %s within %s", what, stepPatience))
	defer cancel()
	for {
		if so, err := is(); so || err != nil {
			return err
		}
		select {
		case _, open := <-events:
			if !open {
				return engine.ErrEventsLost
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func stepTable(steps []step) []fmt.Stringer {
	t := &table{
		head: []string{
			fmt.Sprintf("a queue grows, beside %s policies at rest", count(scalingPolicies)), "median", "p95",
		},
	}
	for _, part := range []struct {
		name string
		took func(s step) time.Duration
	}{
		{"the queue is asked next", func(s step) time.Duration { return s.asked.Sub(s.grown) }},
		{"the policy decides", func(s step) time.Duration { return s.decided.Sub(s.asked) }},
		{"the count is written", func(s step) time.Duration { return s.written.Sub(s.decided) }},
		{"the member runs", func(s step) time.Duration { return s.running.Sub(s.written) }},
		{"from the growth to the count", func(s step) time.Duration { return s.written.Sub(s.grown) }},
		{"from the growth to the member", func(s step) time.Duration { return s.running.Sub(s.grown) }},
	} {
		var took sample
		for _, s := range steps {
			took = append(took, part.took(s))
		}
		t.add(part.name, inMilliseconds(took.median()), inMilliseconds(took.p95()))
	}
	return []fmt.Stringer{
		note(""), t,
		note(fmt.Sprintf("%d steps, each in another part of the policy's interval of a second. It asks together with "+
			"those of the others whose time it is,", len(steps))),
		note("whose metrics agents measure, and waits for its own answer only."),
	}
}
