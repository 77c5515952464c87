package backtest

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/prometheus"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/policy"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

const (
	// mostSteps is how many changes are shown.
	mostSteps = 1000
	// mostDecisions limits the duration of a backtest: as many decisions as two years have at one every five seconds.
	mostDecisions = 2 * 365 * 24 * 3600 / 5
	// longestTrace limits the time that a trace covers.
	longestTrace = 100 * 365 * 24 * time.Hour
)

// Summaries of the problems of a backtest.
const (
	invalidPolicy = "Invalid policy"
	invalidTrace  = "Invalid trace"
	invalidModel  = "Invalid model"
)

// Model is trainyard_policy_backtest.
type Model struct {
	Policy                  policyModel        `tfsdk:"policy"`
	Trace                   traceModel         `tfsdk:"trace"`
	Model                   memberModel        `tfsdk:"model"`
	Steps                   []scalingStepModel `tfsdk:"steps"`
	StepsLeftOut            types.Int64        `tfsdk:"steps_left_out"`
	UnderProvisionedSeconds types.Float64      `tfsdk:"under_provisioned_seconds"`
	UnderProvisionedPercent types.Float64      `tfsdk:"under_provisioned_percent"`
	MemberHours             types.Float64      `tfsdk:"member_hours"`
	Changes                 types.Int64        `tfsdk:"changes"`
	ChangesPerHour          types.Float64      `tfsdk:"changes_per_hour"`
	Reversals               types.Int64        `tfsdk:"reversals"`
	SVG                     types.String       `tfsdk:"svg"`
}

// policyModel is a policy whose metrics are signals of the simulated members.
type policyModel struct {
	policy.ScalingModel

	Metrics map[string]metricModel `tfsdk:"metrics"`
}

type metricModel struct {
	policy.ScalingMetricModel

	Signal *string `tfsdk:"signal"`
}

// algorithm returns the metric's algorithm, empty if it has none.
func (m metricModel) algorithm() policy.ScalingAlgorithmModel { return resourcekit.Value(m.Algorithm) }

// traceModel is a load over time, given by one of its attributes.
type traceModel struct {
	CSV        *string               `tfsdk:"csv"`
	Load       *loadModel            `tfsdk:"load"`
	Prometheus *tracePrometheusModel `tfsdk:"prometheus"`
}

// tracePrometheusModel is a range of a Prometheus query.
type tracePrometheusModel struct {
	URL     string       `tfsdk:"url"`
	Query   string       `tfsdk:"query"`
	Start   string       `tfsdk:"start"`
	End     string       `tfsdk:"end"`
	Step    string       `tfsdk:"step"`
	Timeout types.String `tfsdk:"timeout"`
}

type loadModel struct {
	Start  string          `tfsdk:"start"`
	Step   string          `tfsdk:"step"`
	Values []types.Float64 `tfsdk:"values"`
}

// memberModel is how a member handles load.
type memberModel struct {
	Capacity types.Float64 `tfsdk:"capacity"`
	Startup  types.String  `tfsdk:"startup"`
	// ChangeTime and ChangeLossPercent are as in [autoscale.ChangeCost].
	ChangeTime        types.String  `tfsdk:"change_time"`
	ChangeLossPercent types.Float64 `tfsdk:"change_loss_percent"`
}

type scalingStepModel struct {
	At     timetypes.RFC3339 `tfsdk:"at"`
	From   int64             `tfsdk:"from"`
	To     int64             `tfsdk:"to"`
	Reason string            `tfsdk:"reason"`
}

// expand returns what to test, and its problems. It reads a trace from Prometheus unless there are other problems.
func (m Model) expand(
	ctx context.Context, logins map[string]prometheus.Credentials, diags *diag.Diagnostics,
) (domain.AutoscalingPolicy, autoscale.Trace, autoscale.Model, domain.Problems) {
	policy := m.Policy.expand(diags)
	problems := m.Policy.problems(policy)
	trace, found := m.Trace.expand()
	problems = append(problems, found...)
	model, found := m.Model.expand(m.Policy.signals())
	problems = append(problems, found...)
	for _, metric := range policy.Metrics {
		if f := metric.Forecast; f != nil && f.Lead == 0 {
			f.Lead = domain.Duration(model.Startup)
		}
	}
	if asked := m.Trace.Prometheus; asked != nil && problems.Err() == nil {
		var err error
		if trace, err = asked.read(ctx, logins); err != nil {
			problems.Add(domain.Path{"trace", "prometheus"}, "Unable to read the trace", "%v", err)
		}
		problems = append(problems, tooManyYears(trace)...)
	}
	if problems.Err() == nil {
		problems = append(problems, tooLong(policy, trace)...)
	}
	return policy, trace, model, problems
}

// expand returns the policy, for a role that only exists in the backtest.
func (m policyModel) expand(diags *diag.Diagnostics) domain.AutoscalingPolicy {
	policy := domain.AutoscalingPolicy{Cluster: "backtest", Group: "backtest", Role: "backtest"}
	resourcekit.Expand(&policy, m, diags)
	return policy
}

// signals returns the signal of each metric.
func (m policyModel) signals() map[string]autoscale.Signal {
	signals := m.ownSignals()
	for _, metric := range m.Metrics {
		if a := metric.algorithm().Learned; a != nil {
			for feature, name := range a.Observes.Elements() {
				other, _ := name.(types.String)
				if observed, found := m.Metrics[other.ValueString()]; found && observed.Signal == nil &&
					observed.Algorithm == nil {
					signals[other.ValueString()] = autoscale.FeatureSignals[feature]
				}
			}
		}
	}
	return signals
}

// ownSignals returns the signal of each metric by its own attributes.
func (m policyModel) ownSignals() map[string]autoscale.Signal {
	return resourcekit.ConvertMap(m.Metrics, func(metric metricModel) autoscale.Signal {
		otherwise := autoscale.SignalUtilisation
		switch a := metric.algorithm(); {
		case a.Queue != nil:
			otherwise = autoscale.SignalQueue
		case a.Target != nil && resourcekit.Value(a.Target.Per) == string(domain.TargetTotal),
			a.Risk != nil && resourcekit.Value(a.Risk.Per) == string(domain.TargetTotal),
			a.Learned != nil && resourcekit.Value(a.Learned.Per) == string(domain.TargetTotal):
			otherwise = autoscale.SignalLoad
		}
		return cmp.Or(autoscale.Signal(resourcekit.Value(metric.Signal)), otherwise)
	})
}

// problems returns the problems of the policy, and what of it can't be tested.
func (m policyModel) problems(policy domain.AutoscalingPolicy) domain.Problems {
	var problems domain.Problems
	for _, name := range slices.Sorted(maps.Keys(m.Metrics)) {
		metric := m.Metrics[name]
		at := domain.Path{"policy", "metrics", domain.Key(name)}
		const others = "target, heat, threshold, queue, risk and learned can be tested"
		if a := metric.algorithm().MarginalGain; a != nil {
			problems.Add(at.At("algorithm", "marginal_gain"), invalidPolicy,
				"marginal_gain with threshold = %v follows training progress, which a backtest does not model; %s",
				a.Threshold.ValueFloat64(), others)
		}
		if a := metric.algorithm().Ratio; a != nil {
			problems.Add(at.At("algorithm", "ratio"), invalidPolicy,
				"ratio follows the members of role %q, and a backtest has only one role; %s", a.Role, others)
		}
		if metric.algorithm().External != nil {
			problems.Add(at.At("algorithm", "external"), invalidPolicy,
				"external asks a program of yours, and a backtest asks none; %s", others)
		}
		if metric.algorithm().IdleRoom != nil {
			problems.Add(at.At("algorithm", "idle_room"), invalidPolicy,
				"idle_room follows the room on hosts, which a backtest does not model; %s", others)
		}
		if s := metric.Signal; s != nil && !slices.Contains(autoscale.Signals, autoscale.Signal(*s)) {
			problems.Add(at.At("signal"), invalidPolicy, "unknown signal %q; use one of %q", *s, autoscale.Signals)
		}
	}
	for _, p := range autoscale.Validate(policy) {
		p.Path = append(domain.Path{"policy"}, p.Path...)
		problems = append(problems, p)
	}
	return problems
}

// expand returns the trace, and its problems. A trace from Prometheus has no values yet, see
// [tracePrometheusModel.read].
func (m traceModel) expand() (autoscale.Trace, domain.Problems) {
	at, given := domain.Path{"trace"}, 0
	for _, there := range []bool{m.CSV != nil, m.Load != nil, m.Prometheus != nil} {
		if there {
			given++
		}
	}
	var (
		trace    autoscale.Trace
		problems domain.Problems
		err      error
	)
	switch {
	case given > 1:
		problems.Add(at, invalidTrace, "%d traces are given; set exactly one of csv, load and prometheus", given)
	case given == 0:
		problems.Add(at, invalidTrace,
			`no trace is given; set csv = file("load.csv"), load = { start, step, values } or `+
				"prometheus = { url, query, start, end, step }")
	case m.Prometheus != nil:
		_, problems = m.Prometheus.expand(at.At("prometheus"))
	case m.CSV != nil:
		if trace, err = autoscale.ReadCSV(strings.NewReader(*m.CSV)); err != nil {
			problems.Add(at.At("csv"), invalidTrace, "%v", err)
		}
	default:
		trace, problems = m.Load.expand(at.At("load"))
	}
	if len(problems) == 0 {
		problems = tooManyYears(trace)
	}
	return trace, problems
}

// tooManyYears returns the problem of a trace that is too long to compute with.
func tooManyYears(trace autoscale.Trace) domain.Problems {
	var problems domain.Problems
	if covered := trace.Step.Hours() * float64(len(trace.Load)); covered > longestTrace.Hours() {
		problems.Add(domain.Path{"trace"}, invalidTrace, "it covers %.0f years; at most 100 are allowed",
			covered/365/24)
	}
	return problems
}

func (m loadModel) expand(at domain.Path) (autoscale.Trace, domain.Problems) {
	var problems domain.Problems
	trace := autoscale.Trace{
		Start: traceTime(&problems, at.At("start"), m.Start), Step: traceStep(&problems, at.At("step"), m.Step),
	}
	if len(m.Values) == 0 {
		problems.Add(at.At("values"), invalidTrace, "no values are given; at least 1 is required")
	}
	for i, value := range m.Values {
		v := value.ValueFloat64()
		if value.IsNull() {
			problems.Add(at.At("values", i), invalidTrace, "null is not a valid load; use 0 or more")
			break
		}
		if v < 0 || math.IsInf(v, 0) {
			problems.Add(at.At("values", i), invalidTrace, "%v is not a valid load; use 0 or more", v)
			break
		}
		trace.Load = append(trace.Load, v)
	}
	return trace, problems
}

// traceTime parses a time of a trace.
func traceTime(ps *domain.Problems, at domain.Path, text string) time.Time {
	moment, err := time.Parse(time.RFC3339, text)
	if err != nil {
		ps.Add(at, invalidTrace, `%q is not a valid time in RFC 3339, such as "2026-01-31T12:00:00Z"`, text)
	}
	return moment
}

// traceStep parses the time between two values of a trace.
func traceStep(ps *domain.Problems, at domain.Path, text string) time.Duration {
	step, err := time.ParseDuration(text)
	if err != nil || step <= 0 {
		ps.Add(at, invalidTrace, `%q is not a valid step; use a duration above 0, such as "1m"`, text)
	}
	return step
}

// expand returns the range to query, and its problems.
func (m tracePrometheusModel) expand(at domain.Path) (prometheus.Range, domain.Problems) {
	var problems domain.Problems
	asked := prometheus.Range{
		Query: m.Query, Start: traceTime(&problems, at.At("start"), m.Start),
		End: traceTime(&problems, at.At("end"), m.End), Step: traceStep(&problems, at.At("step"), m.Step),
	}
	switch {
	case len(problems) > 0:
	case !asked.End.After(asked.Start):
		problems.Add(at.At("end"), invalidTrace, "%q is not after start, %q", m.End, m.Start)
	case asked.Step < time.Millisecond:
		problems.Add(at.At("step"), invalidTrace, `%q is below the resolution of Prometheus; use "1ms" or more`, m.Step)
	case asked.Points() > autoscale.MaxTrace:
		problems.Add(at.At("step"), invalidTrace, "there are %d values from start to end at steps of %s; at most %d "+
			"are allowed: use a larger step or a shorter range", asked.Points(), m.Step, autoscale.MaxTrace)
	}
	return asked, problems
}

// read returns the trace of a valid range.
func (m tracePrometheusModel) read(
	ctx context.Context, logins map[string]prometheus.Credentials,
) (autoscale.Trace, error) {
	asked, _ := m.expand(nil)
	settings, err := (&resourcekit.PrometheusModel{URL: m.URL, Timeout: m.Timeout}).Expand(logins)
	if err != nil {
		return autoscale.Trace{}, err
	}
	values, err := settings.Range(ctx, asked)
	if err != nil {
		return autoscale.Trace{}, err
	}
	return autoscale.NewTrace(asked.Start, asked.Step, values)
}

// expand returns the model of members whose metrics have these signals, and its problems.
func (m memberModel) expand(signals map[string]autoscale.Signal) (autoscale.Model, domain.Problems) {
	at := domain.Path{"model"}
	var problems domain.Problems
	capacity := m.Capacity.ValueFloat64()
	if capacity <= 0 || math.IsInf(capacity, 0) {
		problems.Add(at.At("capacity"), invalidModel, "capacity must be above 0, got %v", capacity)
	}
	lasts := func(attribute string, value types.String, what, such string) time.Duration {
		d, err := time.ParseDuration(resourcekit.StringOr(value, "0s"))
		if err != nil || d < 0 {
			problems.Add(at.At(attribute), invalidModel,
				"%q is not a valid time %s; use a duration of 0 or more, such as %q", value.ValueString(), what, such)
		}
		return d
	}
	startup := lasts("startup", m.Startup, "for a member to start", "90s")
	change := autoscale.ChangeCost{
		Takes: lasts("change_time", m.ChangeTime, "for data to move", "40s"),
		Lost:  m.ChangeLossPercent.ValueFloat64() / 100,
	}
	if !(change.Lost >= 0 && change.Lost < 1) {
		problems.Add(at.At("change_loss_percent"), invalidModel, "%v %% is out of range; use 0 to less than 100",
			m.ChangeLossPercent.ValueFloat64())
	}
	return autoscale.Model{Capacity: capacity, Startup: startup, Change: change, Signals: signals}, problems
}

// tooLong returns the problem of a trace that takes too many decisions of the policy.
func tooLong(policy domain.AutoscalingPolicy, trace autoscale.Trace) domain.Problems {
	var problems domain.Problems
	if decisions := trace.Step.Seconds() * float64(
		len(trace.Load),
	) / policy.Every().Seconds(); decisions > mostDecisions {
		problems.Add(domain.Path{"trace"}, invalidTrace,
			"it takes %.0f decisions, one every %s; at most %d are allowed: test a part of it, or raise "+
				"policy.interval",
			decisions, policy.Every(), mostDecisions)
	}
	return problems
}

// flatten completes the model with the course of the backtest.
func (m *Model) flatten(course autoscale.Course, trace autoscale.Trace, model autoscale.Model) {
	m.Steps = []scalingStepModel{}
	for _, s := range course.Steps[max(0, len(course.Steps)-mostSteps):] {
		m.Steps = append(m.Steps, scalingStepModel{resourcekit.Moment(&s.At), int64(s.From), int64(s.To), s.Why})
	}
	m.StepsLeftOut = types.Int64Value(int64(course.Changes + 1 - len(m.Steps))) // the first step is no change
	under := course.Under.Seconds()
	m.UnderProvisionedSeconds = types.Float64Value(under)
	m.UnderProvisionedPercent = types.Float64Value(0)
	if covered := trace.Step.Seconds() * float64(len(trace.Load)); covered > 0 {
		m.UnderProvisionedPercent = types.Float64Value(100 * under / covered)
	}
	m.MemberHours = types.Float64Value(course.MemberHours)
	m.Changes = types.Int64Value(int64(course.Changes))
	m.ChangesPerHour = types.Float64Value(course.ChangesPerHour)
	m.Reversals = types.Int64Value(int64(course.Reversals))
	m.SVG = types.StringValue(course.SVG(trace, model))
}
