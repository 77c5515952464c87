// Package meter reads the metrics of autoscaling policies: agents' measurements of members, values from a Prometheus,
// queue lengths, and members' progress from their logs.
//
// What several policies need at the same moment is read once. A metric that fails, hangs or is unknown is missing, with
// the reason, and delays nothing else; it is never 0.
package meter

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// DefaultLimit is how long sources may take.
const DefaultLimit = 5 * time.Second

// settling is how much longer than the limit to wait for an answer, so that a source's own error, which says
// what it waited for, is used.
const settling = 100 * time.Millisecond

// Meter reads the metrics of a cluster's policies. It is safe for concurrent use.
type Meter struct {
	// Limit is how long sources may take. It must not be changed during a read.
	Limit time.Duration

	engine Engine
	http   *http.Client
	usages usages

	mu sync.Mutex
	// windows are the values of sources without a history of their own, by source.
	windows map[string]*window
}

// Engine is the part of an [engine.Engine] that a meter uses.
type Engine interface {
	engine.Telemetry
	Snapshot() engine.Engine
}

// New returns a meter for the cluster of an engine, with the default limit.
func New(e Engine) *Meter {
	return &Meter{
		Limit: DefaultLimit, engine: e, http: newClient(requestsAtOnce), usages: usages{engine: e},
		windows: map[string]*window{},
	}
}

// Observation is what is known of a cluster at one moment.
type Observation struct {
	// Groups are the groups' documents, and Members are their observed members, by group.
	Groups  map[string]domain.GroupDocument
	Members map[string][]domain.Observed
}

// Question is a metric of a policy.
type Question struct {
	// Metric names the metric, and Group and Role the members that it is about.
	Metric, Group, Role string

	Source domain.ScalingSource
	// Window and Aggregation are as in [domain.ScalingMetric].
	Window      *domain.Duration
	Aggregation domain.Aggregation
	// Truth means that true and false are accepted as 1 and 0.
	Truth bool
	// ReadyAfter is as in [domain.ScalingMetric].
	ReadyAfter *domain.Duration
	// StaleAfter is the maximum age of Prometheus samples; 0 for Prometheus' own default.
	StaleAfter time.Duration
}

// Read returns the measurements for the questions, in their order. A value that can't be read has a reason instead,
// and does not affect others.
func (m *Meter) Read(
	ctx context.Context, now time.Time, observation Observation, questions []Question,
) []autoscale.Measurement {
	measurements := make([]autoscale.Measurement, len(questions))
	for i, answer := range m.Ask(ctx, now, observation, questions) {
		measurements[i] = answer()
	}
	return measurements
}

// Answer waits for the measurement of a metric, until the limit at the latest and independent of sources that only
// other metrics use. It is safe for concurrent use.
type Answer func() autoscale.Measurement

// Ask starts reading metrics as [Meter.Read] does, without waiting for them.
func (m *Meter) Ask(ctx context.Context, now time.Time, observation Observation, questions []Question) []Answer {
	slow := fmt.Errorf("no answer within %s", m.Limit)
	ctx, cancel := context.WithTimeoutCause(ctx, m.Limit, slow)
	patience, giveUp := context.WithTimeoutCause(context.WithoutCancel(ctx), m.Limit+settling, slow)
	m.forget(now)
	r := &reading{meter: m, now: now, observation: observation, patience: patience}
	answers := make([]Answer, len(questions))
	for i, question := range questions {
		answers[i] = r.ask(question)
	}
	var requests sync.WaitGroup
	for _, run := range r.requests {
		requests.Go(func() { run(ctx) })
	}
	go func() {
		requests.Wait()
		cancel()
		giveUp()
	}()
	return answers
}

// reading is the state of one Ask. Questions first register the requests that they need; then all requests run, and the
// answers are made from their results.
type reading struct {
	meter       *Meter
	now         time.Time
	observation Observation
	patience    context.Context //nolint:containedctx // of this one call

	requests   []func(context.Context)
	shared     map[any]any
	semaphores map[string]semaphore
	servers    map[string]*redisServer
	// logs is an engine snapshot for reading logs, so that lists are read once.
	logs       engine.Telemetry
	memberLogs map[logKey]*memberLog

	mu    sync.Mutex
	parts map[partKey]*part
}

// ask registers the requests for a question, and returns a function that makes its measurement from the results.
func (r *reading) ask(q Question) Answer {
	switch s := q.Source; {
	case s.Agent != nil:
		return r.askAgents(q, *s.Agent)
	case s.Progress != nil:
		return r.askProgress(q, *s.Progress)
	case s.Prometheus != nil:
		return r.sample(q, r.askPrometheus(query{*s.Prometheus, q.StaleAfter}))
	case s.Queue != nil:
		return r.sample(q, r.askQueue(*s.Queue, q.Truth))
	}
	return func() autoscale.Measurement { return missing("the metric has no source") }
}

// value is a value with its time.
type value struct {
	value float64
	at    time.Time
}

// sample returns the measurement of a value, or of the stored values within the question's window.
func (r *reading) sample(q Question, read func() (value, error)) Answer {
	return func() autoscale.Measurement {
		v, err := read()
		if err != nil {
			return missing(err.Error())
		}
		if q.Window == nil {
			return autoscale.Measurement{Value: v.value, At: v.at}
		}
		return r.meter.remember(q, v, r.now)
	}
}

// missing is the measurement of an unknown value, with the reason.
func missing(why string) autoscale.Measurement { return autoscale.Measurement{Why: why} }

// pick returns the value of a measure for an aggregation; nil if unknown.
func pick(m domain.Measure, a domain.Aggregation) *float64 {
	switch a {
	case domain.AggregateMax:
		return m.Max
	case domain.AggregateP95:
		return m.P95
	case domain.AggregateLast:
		return m.Last
	}
	return m.Mean
}
