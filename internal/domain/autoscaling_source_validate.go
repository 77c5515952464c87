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
		{"agent", m.Source.Agent != nil}, {"prometheus", m.Source.Prometheus != nil}, {"queue", m.Source.Queue != nil}, {"progress", m.Source.Progress != nil},
	} {
		all = append(all, source.name)
		if source.given {
			names = append(names, source.name)
		}
	}
	without := m.withoutSource()
	switch {
	case without != "" && len(names) > 0:
		ps.Add(at, "Source without use", "%s; %q would never be asked: leave it out", without, names)
	case without != "":
	case len(names) == 0:
		ps.Add(at, "No source", "a metric needs to come from somewhere; there are %q", all)
		ps.DecidedBy([]Path{at, metric.At("algorithm", "ratio"), metric.At("algorithm", "external"), metric.At("algorithm", "idle_room")})
	case len(names) > 1:
		ps.Add(at, "Several sources", "%q are given, and a metric has one; give each a metric of its own, of which the largest count is taken", names)
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
		return "algorithm external is asked itself, and is given the values of the other metrics"
	case m.Algorithm.IdleRoom != nil:
		return "algorithm idle_room follows the room that hosts have"
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
		ps.Add(at, "Not a metric of the whole", "algorithm marginal_gain asks what one more member adds to all of them, which a mean of the members does not show; set of = %q", AgentTotal)
	case per == TargetTotal && !total:
		ps.Add(at, "Not a metric of the whole", "a target, a risk or a learned model with per = %q is what each member has of the whole, and the value is a mean of the members already; set of = %q, or per = %q",
			TargetTotal, AgentTotal, TargetMean)
		ps.DecidedBy(inputs)
	case per == TargetMean && total:
		ps.Add(at, "Not a mean", "a target, a risk or a learned model with per = %q is compared with the mean of the members, and of = %q is the sum of them; set of = %q, or per = %q",
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
		ps.Add(at.At("aggregation"), "Unknown aggregation", "%q makes no one value of several; there are %q", m.Aggregation, Aggregations)
	case m.Aggregation != AggregateMax && m.Aggregation != AggregateP95 && m.Aggregation != AggregateLast:
	case m.Source.Progress != nil:
		ps.Add(at.At("aggregation"), "Aggregation without use", "aggregation is %q, and progress is the mean rate of its window; leave it out", m.Aggregation)
	case m.Window == nil && m.Source.Agent == nil && m.Aggregation != AggregateLast:
		ps.Add(at.At("aggregation"), "Aggregation without use", "aggregation is %q, and without a window there is one value; set window, or leave it out", m.Aggregation)
		ps.DecidedBy([]Path{at.At("aggregation"), at.At("window"), at.At("source", "agent")})
	}
	m.validateReadyAfter(ps, at.At("ready_after"))
	if without := m.withoutSource(); without != "" && (m.Window != nil || m.Aggregation != "") {
		ps.Add(at.At("window"), "Window without use", "%s, and aggregates nothing; leave window and aggregation out", without)
	}
}

// validateReadyAfter checks ready_after, which only applies to CPU usage of single members.
func (m ScalingMetric) validateReadyAfter(ps *Problems, at Path) {
	checkDuration(ps, at, "Invalid time", m.ReadyAfter, 0, MaxReadyAfter)
	if s := m.Source.Agent; m.ReadyAfter != nil && (s == nil || !s.OfProcessors() || s.Of == AgentTotal) {
		ps.Add(at, "Time without use", "ready_after is %s, and only the measures %q and %q of single members wait for these to have started; leave it out",
			*m.ReadyAfter, AgentCPUs, AgentCPUPercent)
		ps.DecidedBy([]Path{at, at[:len(at)-1].At("source")})
	}
}

func (s AgentSource) validate(ps *Problems, at Path) {
	if !slices.Contains(AgentMeasures, s.Measure) {
		ps.Add(at.At("measure"), "Unknown measure", "%q is nothing that agents measure; there are %q", s.Measure, AgentMeasures)
	}
	if s.Of != "" && !slices.Contains(AgentOfs, s.Of) {
		ps.Add(at.At("of"), "Unknown word", "%q does not say whose the value is; there are %q", s.Of, AgentOfs)
	}
}

func (s PrometheusSource) validate(ps *Problems, at Path) {
	const example = "http://prometheus:9090"
	if u := checkURL(ps, at.At("url"), s.URL, example); u != nil && u.RawQuery != "" {
		ps.Add(at.At("url"), "Invalid address", "%s has more than scheme, host, port and path, such as %q", shown(s.URL), example)
	}
	if strings.TrimSpace(s.Query) == "" {
		ps.Add(at.At("query"), "No query", "the query is %q; one in PromQL that returns one value is allowed, such as \"sum(rate(requests_total[1m]))\"", s.Query)
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
		ps.Add(at, "Not one queue", "%q are given, and the length of a queue comes from one of %q", names, []string{"http", "redis", "command"})
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
	if number, numberErr := strconv.Atoi(port); err != nil || numberErr != nil || number < 1 || number > 65535 || host == "" || strings.ContainsAny(host, "@/ ") {
		ps.Add(at.At("address"), "Invalid address", "%s is not <host>:<port>, such as \"redis:6379\"; a password is no part of it, and none is asked for", shown(q.Address))
	}
	if q.Key == "" {
		ps.Add(at.At("key"), "No key", "the key is \"\"; the name of a list is allowed, such as \"jobs\"")
	}
	if q.Database < 0 {
		ps.Add(at.At("database"), "Invalid database", "%d is not the number of a database; 0 or more is allowed", q.Database)
	}
}

func (s ProgressSource) validate(ps *Problems, at Path) {
	if _, err := regexp.Compile(s.Pattern); err != nil || s.Pattern == "" {
		reason := "it matches every line"
		if err != nil {
			reason = err.Error()
		}
		ps.Add(at.At("pattern"), "Invalid pattern", "%q is not a pattern of lines that tell of progress: %s; a regular expression in Go's syntax is allowed, such as `step (?P<%s>[0-9]+)`",
			s.Pattern, reason, StepGroup)
	}
	if s.Role != "" {
		CheckName(ps, at.At("role"), "role", s.Role)
	}
	if s.Combine != "" && !slices.Contains(Combines, s.Combine) {
		ps.Add(at.At("combine"), "Unknown word", "%q makes no one progress of that of the members; there are %q", s.Combine, Combines)
	}
}

func (h ScalingHook) validate(ps *Problems, at Path, longest time.Duration) {
	switch {
	case h.URL == "" && h.Command == nil:
		ps.Add(at, "Nobody to ask", "neither url nor command is given; one of them is needed")
	case h.URL != "" && h.Command != nil:
		ps.Add(at, "Two to ask", "url and command are both given, and one of them is asked; leave the other one out")
	}
	if h.URL != "" {
		checkURL(ps, at.At("url"), h.URL, "http://decider:8080/scale")
	}
	if h.Command != nil {
		checkCommand(ps, at.At("command"), h.Command)
	}
	checkDuration(ps, at.At("timeout"), "Invalid time limit", h.Timeout, MinHookTimeout, longest)
}

// checkURL parses text as an HTTP URL, and returns nil and adds a problem if it is not one. User and password are
// rejected, as URLs are kept in the state and with the cluster.
func checkURL(ps *Problems, at Path, text, example string) *url.URL {
	u, err := url.Parse(text)
	if err == nil && u.User != nil {
		ps.Add(at, "Credentials in an address", "user and password are no part of an address, which is kept in the state and with the cluster; leave them out: what is asked here has to need none")
		return nil
	}
	if err == nil {
		port, portErr := strconv.Atoi(u.Port())
		if (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.Fragment == "" && (u.Port() == "" || portErr == nil && port >= 1 && port <= 65535) {
			return u
		}
	}
	ps.Add(at, "Invalid address", "%s is not an address that can be asked; http:// or https:// with a host is allowed, such as %q", shown(text), example)
	return nil
}

// shown quotes a text, unless it may contain a password.
func shown(text string) string {
	if strings.Contains(text, "@") {
		return "what is given (not shown, as there may be a password in it)"
	}
	return strconv.Quote(text)
}

// checkCommand adds a problem if there is no program to run.
func checkCommand(ps *Problems, at Path, command []string) {
	if len(command) == 0 || strings.TrimSpace(command[0]) == "" {
		ps.Add(at, "No program", "%q names no program; its path or name is allowed, followed by its arguments", command)
	}
}
