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

// settling is how long an answer is waited for beyond the limit for sources to say themselves what they were waiting
// for.
const settling = 100 * time.Millisecond

// Meter reads the metrics of a cluster's policies. All its methods may be called at the same time.
type Meter struct {
	// Limit is how long sources may take. It is not to be changed while one is asked.
	Limit time.Duration

	engine Engine
	http   *http.Client
	usages usages

	mu sync.Mutex
	// windows are the values of sources that remember none themselves, by source.
	windows map[string]*window
}

// Engine is what a meter asks: an [engine.Engine].
type Engine interface {
	engine.Telemetry
	Snapshot() engine.Engine
}

// New returns a meter of the cluster of an engine, with the default limit.
func New(e Engine) *Meter {
	return &Meter{Limit: DefaultLimit, engine: e, http: newClient(requestsAtOnce), usages: usages{engine: e}, windows: map[string]*window{}}
}

// Scene is what is known of a cluster at a moment.
type Scene struct {
	// Groups are the groups' documents, and Members what was observed of each, by the groups' names.
	Groups  map[string]domain.GroupDocument
	Members map[string][]domain.Observed
}

// Question is a metric of a policy.
type Question struct {
	// Metric is what it is for, and Group and Role whose it is.
	Metric, Group, Role string

	Source domain.ScalingSource
	// Window and Aggregation are as in [domain.ScalingMetric].
	Window      *domain.Duration
	Aggregation domain.Aggregation
	// Truth tells that true and false are numbers, too: 1 and 0.
	Truth bool
	// ReadyAfter is as in [domain.ScalingMetric].
	ReadyAfter *domain.Duration
	// StaleAfter is how old the samples of a Prometheus may be; 0 leaves that to it.
	StaleAfter time.Duration
}

// Read returns the measurements of metrics at a moment, in the order of the questions. What can't be read says why, and
// is no error of others.
func (m *Meter) Read(ctx context.Context, now time.Time, scene Scene, questions []Question) []autoscale.Measurement {
	measurements := make([]autoscale.Measurement, len(questions))
	for i, answer := range m.Ask(ctx, now, scene, questions) {
		measurements[i] = answer()
	}
	return measurements
}

// Answer waits for the measurement of a metric: until the limit at the latest, and for nothing that is another metric's
// alone. It may be called at the same time as others.
type Answer func() autoscale.Measurement

// Ask has metrics read, as [Meter.Read] does, and does not wait for them.
func (m *Meter) Ask(ctx context.Context, now time.Time, scene Scene, questions []Question) []Answer {
	slow := fmt.Errorf("there was no answer within %s", m.Limit)
	ctx, cancel := context.WithTimeoutCause(ctx, m.Limit, slow)
	patience, giveUp := context.WithTimeoutCause(context.WithoutCancel(ctx), m.Limit+settling, slow)
	m.forget(now)
	r := &reading{meter: m, now: now, scene: scene, patience: patience}
	answers := make([]Answer, len(questions))
	for i, question := range questions {
		answers[i] = r.ask(question)
	}
	var errands sync.WaitGroup
	for _, run := range r.errands {
		errands.Go(func() { run(ctx) })
	}
	go func() {
		errands.Wait()
		cancel()
		giveUp()
	}()
	return answers
}

// reading is one Ask. Questions note errands, which are what has to be read for them; once all are noted, they are run,
// and then the answers come of what they brought.
type reading struct {
	meter    *Meter
	now      time.Time
	scene    Scene
	patience context.Context //nolint:containedctx // of the one call that it is

	errands []func(context.Context)
	shared  map[any]any
	lanes   map[string]lane
	servers map[string]*redisServer
	// logs is the engine for reading logs, each of whose lists is read once.
	logs       engine.Telemetry
	memberLogs map[logKey]*memberLog

	mu    sync.Mutex
	parts map[partKey]*part
}

// ask notes what has to be read for a question, and returns what makes the measurement of it afterwards.
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

// value is a value of a moment.
type value struct {
	value float64
	at    time.Time
}

// sample makes the measurement of a value, or of those that are remembered of the question's window.
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

// missing is the measurement of what is not known, and why.
func missing(why string) autoscale.Measurement { return autoscale.Measurement{Why: why} }

// pick returns the value of a measure that an aggregation means; nil where it is not known.
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
