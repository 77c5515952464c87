package domain

import (
	"cmp"
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Bounds for the sources of metrics. Agents keep their measurements for MaxAgentWindow; the controller keeps all other
// values itself.
const (
	MinMetricWindow = time.Second
	MaxAgentWindow  = 10 * time.Minute
	MaxMetricWindow = time.Hour
	MaxReadyAfter   = time.Hour
	MinHookTimeout  = 100 * time.Millisecond
	MaxHookTimeout  = 5 * time.Minute
)

// StepGroup is the name of the group that captures the step number in a [ProgressSource] pattern.
const StepGroup = "step"

// ValidateSources returns what is wrong with the metrics' sources in a policy that will be run. A policy that is only
// backtested needs no sources, so [AutoscalingPolicy.Validate] does not require them.
func (p AutoscalingPolicy) ValidateSources() Problems {
	var ps Problems
	for _, name := range slices.Sorted(maps.Keys(p.Metrics)) {
		p.Metrics[name].validateSource(&ps, Path{"metrics", Key(name)})
	}
	return ps
}

// validateSource checks that the metric has exactly one source, and that the source is valid.
func (m ScalingMetric) validateSource(ps *Problems, at Path) {
	metric, at := at, at.At("source")
	var names, all []string
	for _, source := range []struct {
		name  string
		given bool
	}{
		{"agent", m.Source.Agent != nil}, {"prometheus", m.Source.Prometheus != nil}, {"queue", m.Source.Queue != nil},
		{"progress", m.Source.Progress != nil},
	} {
		all = append(all, source.name)
		if source.given {
			names = append(names, source.name)
		}
	}
	without := m.withoutSource()
	switch {
	case without != "" && len(names) > 0:
		ps.Add(at, "Source not used", "%s; %q would never be read: leave it out", without, names)
	case without != "":
	case len(names) == 0:
		ps.Add(at, "No source", "a metric needs a source, one of %q", all)
		ps.DecidedBy([]Path{
			at, metric.At("algorithm", "ratio"), metric.At("algorithm", "external"),
			metric.At("algorithm", "idle_room"),
		})
	case len(names) > 1:
		ps.Add(at, "Several sources",
			"a metric has only one source, got %q; define a metric for each, of which the largest count is used", names)
	}
	if m.Source.Agent != nil {
		m.Source.Agent.validate(ps, at.At("agent"))
		m.validateWhole(ps, metric)
	}
	if m.Source.Prometheus != nil {
		m.Source.Prometheus.validate(ps, at.At("prometheus"))
	}
	if m.Source.Queue != nil {
		m.Source.Queue.validate(ps, at.At("queue"))
	}
	if m.Source.Progress != nil {
		m.Source.Progress.validate(ps, at.At("progress"))
	}
}

// withoutSource says why the metric's algorithm takes no source; "" if it takes one.
func (m ScalingMetric) withoutSource() string {
	switch {
	case m.Algorithm.Ratio != nil:
		return "algorithm ratio follows the number of members of another role"
	case m.Algorithm.External != nil:
		return "algorithm external needs no source, as it receives the values of the other metrics"
	case m.Algorithm.IdleRoom != nil:
		return "algorithm idle_room follows the free room on the hosts"
	}
	return ""
}

// validateWhole finds algorithms that expect a mean of members but get a metric of the whole role, or the other way
// round.
func (m ScalingMetric) validateWhole(ps *Problems, metric Path) {
	total, at := m.Source.Agent.Of == AgentTotal, metric.At("source", "agent", "of")
	inputs := []Path{at, metric.At("algorithm", "target", "per")}
	per := TargetPer("")
	switch a := m.Algorithm; {
	case a.Target != nil:
		per = cmp.Or(a.Target.Per, TargetMean)
	case a.Risk != nil:
		per, inputs[1] = cmp.Or(a.Risk.Per, TargetMean), metric.At("algorithm", "risk", "per")
	case a.Learned != nil:
		per, inputs[1] = cmp.Or(a.Learned.Per, TargetMean), metric.At("algorithm", "learned", "per")
	}
	switch a := m.Algorithm; {
	case a.MarginalGain != nil && !total:
		ps.Add(at, "Not a total", "algorithm marginal_gain needs to know what one more member adds to the total, "+
			"which a mean of the members does not show; set of = %q", AgentTotal)
	case per == TargetTotal && !total:
		ps.Add(at, "Not a total", "with per = %q, a target, a risk or a learned model divides a total by the "+
			"members, but the value is already a mean of the members; set of = %q, or per = %q",
			TargetTotal, AgentTotal, TargetMean)
		ps.DecidedBy(inputs)
	case per == TargetMean && total:
		ps.Add(at, "Not a mean", "with per = %q, a target, a risk or a learned model expects a mean of the members, "+
			"but of = %q is their sum; set of = %q, or per = %q",
			TargetMean, AgentTotal, AgentMember, TargetTotal)
		ps.DecidedBy(inputs)
	}
}

// validateWindow checks the window and the aggregation.
func (m ScalingMetric) validateWindow(ps *Problems, at Path) {
	longest := MaxMetricWindow
	if m.Source.Agent != nil {
		longest = MaxAgentWindow
	}
	checkDuration(ps, at.At("window"), "Invalid window", m.Window, MinMetricWindow, longest)
	switch {
	case m.Aggregation != "" && !slices.Contains(Aggregations, m.Aggregation):
		ps.Add(at.At("aggregation"), "Unknown aggregation", "unknown aggregation %q; use one of %q", m.Aggregation,
			Aggregations)
	case m.Aggregation != AggregateMax && m.Aggregation != AggregateP95 && m.Aggregation != AggregateLast:
	case m.Source.Progress != nil:
		ps.Add(at.At("aggregation"), "Aggregation has no effect",
			"aggregation is %q, but progress is always the mean rate over its window; leave it out", m.Aggregation)
	case m.Window == nil && m.Source.Agent == nil && m.Aggregation != AggregateLast:
		ps.Add(at.At("aggregation"), "Aggregation has no effect",
			"aggregation is %q, but without a window there is only one value; set window, or leave it out",
			m.Aggregation)
		ps.DecidedBy([]Path{at.At("aggregation"), at.At("window"), at.At("source", "agent")})
	}
	m.validateReadyAfter(ps, at.At("ready_after"))
	if without := m.withoutSource(); without != "" && (m.Window != nil || m.Aggregation != "") {
		ps.Add(at.At("window"), "Window has no effect", "%s, and aggregates nothing; leave window and aggregation out",
			without)
	}
}

// validateReadyAfter checks ready_after, which only applies to CPU usage of single members.
func (m ScalingMetric) validateReadyAfter(ps *Problems, at Path) {
	checkDuration(ps, at, "Invalid time", m.ReadyAfter, 0, MaxReadyAfter)
	if s := m.Source.Agent; m.ReadyAfter != nil && (s == nil || !s.OfProcessors() || s.Of == AgentTotal) {
		ps.Add(at, "Time has no effect",
			"ready_after is %s, but it only applies to the measures %q and %q of single members; leave it out",

			*m.ReadyAfter, AgentCPUs, AgentCPUPercent)
		ps.DecidedBy([]Path{at, at[:len(at)-1].At("source")})
	}
}

func (s AgentSource) validate(ps *Problems, at Path) {
	if !slices.Contains(AgentMeasures, s.Measure) {
		ps.Add(at.At("measure"), "Unknown measure", "unknown measure %q; use one of %q", s.Measure, AgentMeasures)
	}
	if s.Of != "" && !slices.Contains(AgentOfs, s.Of) {
		ps.Add(at.At("of"), "Unknown value", "unknown value %q; use one of %q", s.Of, AgentOfs)
	}
}

func (s PrometheusSource) validate(ps *Problems, at Path) {
	const example = "http://prometheus:9090"
	if u := checkURL(ps, at.At("url"), s.URL, example); u != nil && u.RawQuery != "" {
		ps.Add(at.At("url"), "Invalid URL", "%s must have only a scheme, host, port and path, such as %q", shown(s.URL),
			example)
	}
	if strings.TrimSpace(s.Query) == "" {
		ps.Add(at.At("query"), "No query",
			"must be a PromQL query that returns one value, such as \"sum(rate(requests_total[1m]))\", got %q", s.Query)
	}
}

func (s QueueSource) validate(ps *Problems, at Path) {
	var names []string
	for _, kind := range []struct {
		name  string
		given bool
	}{{"http", s.HTTP != nil}, {"redis", s.Redis != nil}, {"command", s.Command != nil}} {
		if kind.given {
			names = append(names, kind.name)
		}
	}
	if len(names) != 1 {
		ps.Add(at, "Invalid queue", "exactly one of %q is required, got %q", []string{"http", "redis", "command"},
			names)
	}
	if s.HTTP != nil {
		checkURL(ps, at.At("http", "url"), s.HTTP.URL, "http://broker:8080/api/queues/jobs")
	}
	if s.Redis != nil {
		s.Redis.validate(ps, at.At("redis"))
	}
	if s.Command != nil {
		checkCommand(ps, at.At("command"), s.Command)
	}
}

func (q RedisQueue) validate(ps *Problems, at Path) {
	host, port, err := net.SplitHostPort(q.Address)
	if number, numberErr := strconv.Atoi(port); err != nil || numberErr != nil || number < 1 || number > 65535 ||
		host == "" || strings.ContainsAny(host, "@/ ") {
		ps.Add(at.At("address"), "Invalid address",
			"%s is not <host>:<port>, such as \"redis:6379\"; a Redis that requires a password is not supported",
			shown(q.Address))
	}
	if q.Key == "" {
		ps.Add(at.At("key"), "No key", "must be the name of a list, such as \"jobs\", got \"\"")
	}
	if q.Database < 0 {
		ps.Add(at.At("database"), "Invalid database", "must be 0 or more, got %d", q.Database)
	}
}

func (s ProgressSource) validate(ps *Problems, at Path) {
	if _, err := regexp.Compile(s.Pattern); err != nil || s.Pattern == "" {
		reason := "it matches every line"
		if err != nil {
			reason = err.Error()
		}
		ps.Add(at.At("pattern"), "Invalid pattern", "%q is not a valid pattern for lines with progress: %s; use a "+
			"regular expression in Go's syntax, such as `step (?P<%s>[0-9]+)`",
			s.Pattern, reason, StepGroup)
	}
	if s.Role != "" {
		CheckName(ps, at.At("role"), "role", s.Role)
	}
	if s.Combine != "" && !slices.Contains(Combines, s.Combine) {
		ps.Add(at.At("combine"), "Unknown value", "unknown value %q; use one of %q", s.Combine, Combines)
	}
}

// validate adds a hook's problems, in which form is how its URL is shown.
func (h ScalingHook) validate(ps *Problems, at Path, longest time.Duration, form func(url string) string) {
	switch {
	case h.URL == "" && h.Command == nil:
		ps.Add(at, "Missing url or command", "either url or command is required")
	case h.URL != "" && h.Command != nil:
		ps.Add(at, "Conflicting url and command", "url and command are mutually exclusive; leave one of them out")
	}
	if h.URL != "" {
		checkShownURL(ps, at.At("url"), h.URL, form(h.URL), "http://decider:8080/scale")
	}
	if h.Command != nil {
		checkCommand(ps, at.At("command"), h.Command)
	}
	checkDuration(ps, at.At("timeout"), "Invalid time limit", h.Timeout, MinHookTimeout, longest)
}

// checkURL parses text as an HTTP URL, and returns nil and adds a problem if it is not one. User and password are
// rejected, as URLs are kept in the state and with the cluster.
func checkURL(ps *Problems, at Path, text, example string) *url.URL {
	return checkShownURL(ps, at, text, shown(text), example)
}

// checkShownURL is [checkURL], whose problems show the text in another form.
func checkShownURL(ps *Problems, at Path, text, form, example string) *url.URL {
	u, err := url.Parse(text)
	if err == nil && u.User != nil {
		ps.Add(at, "Credentials in a URL", "the URL must not contain a user or password, as it is stored in the "+
			"state and with the cluster; leave them out: authentication is not supported here")
		return nil
	}
	if err == nil {
		port, portErr := strconv.Atoi(u.Port())
		if (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.Fragment == "" &&
			(u.Port() == "" || portErr == nil && port >= 1 && port <= 65535) {
			return u
		}
	}
	ps.Add(at, "Invalid URL", "%s is not a valid URL; use http:// or https:// with a host, such as %q", form,
		example)
	return nil
}

// shown quotes a text, unless it may contain a password.
func shown(text string) string {
	if strings.Contains(text, "@") {
		return "the value (not shown, as it may contain a password)"
	}
	return strconv.Quote(text)
}

// checkCommand adds a problem if there is no program to run.
func checkCommand(ps *Problems, at Path, command []string) {
	if len(command) == 0 || strings.TrimSpace(command[0]) == "" {
		ps.Add(at, "No program", "must be the name or path of a program, followed by its arguments, got %q", command)
	}
}
