package domain

import (
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestValidateSources(t *testing.T) {
	minute := Duration(time.Minute)
	queue := ScalingAlgorithm{Queue: &QueueAlgorithm{PerMember: 10}}
	mean, total := ScalingAlgorithm{
		Target: &TargetAlgorithm{Value: 60},
	}, ScalingAlgorithm{Target: &TargetAlgorithm{Value: 60, Per: TargetTotal}}
	gain := ScalingAlgorithm{MarginalGain: &MarginalGainAlgorithm{Threshold: 0.1}}
	ratio := ScalingAlgorithm{Ratio: &RatioAlgorithm{Role: "frontend", Per: 1}}
	external := ScalingAlgorithm{External: &ExternalAlgorithm{ScalingHook{Command: []string{"decide"}}}}
	from := func(s ScalingSource) ScalingMetric { return ScalingMetric{Algorithm: queue, Source: s} }
	readyAfter := func(m ScalingMetric, d Duration) ScalingMetric {
		m.ReadyAfter = &d
		return m
	}
	agent := func(a ScalingAlgorithm, of AgentOf) ScalingMetric {
		return ScalingMetric{Algorithm: a, Source: ScalingSource{Agent: &AgentSource{Measure: AgentCPUs, Of: of}}}
	}
	prometheus := func(address, query string) ScalingMetric {
		return from(ScalingSource{Prometheus: &PrometheusSource{URL: address, Query: query}})
	}
	http := func(address string) ScalingMetric {
		return from(ScalingSource{Queue: &QueueSource{HTTP: &HTTPQueue{URL: address}}})
	}
	redis := func(address, key string, database int) ScalingMetric {
		return from(ScalingSource{
			Queue: &QueueSource{Redis: &RedisQueue{Address: address, Key: key, Database: database}},
		})
	}
	progress := func(s ProgressSource) ScalingMetric { return from(ScalingSource{Progress: &s}) }
	window := func(m ScalingMetric, d Duration, a Aggregation) ScalingMetric {
		m.Window, m.Aggregation = &d, a
		return m
	}
	aggregated := func(m ScalingMetric, a Aggregation) ScalingMetric {
		m.Aggregation = a
		return m
	}
	steps := progress(ProgressSource{Pattern: `step (?P<step>\d+)`, Role: "worker", Combine: CombineMax})
	for name, test := range map[string]struct {
		metric ScalingMetric
		// path is that of the only problem, within the metric, and detail a part of its text; "" if there is none.
		path, detail string
	}{
		"members":                  {agent(mean, ""), "", ""},
		"members, for ten minutes": {window(agent(mean, AgentMember), 10*minute, AggregateMax), "", ""},
		"the last of members":      {aggregated(agent(mean, ""), AggregateLast), "", ""},
		"ready at once":            {readyAfter(agent(mean, ""), 0), "", ""},
		"ready too late": {
			readyAfter(agent(mean, ""), 61*minute), "ready_after", "must be between 0s and 1h0m0s, got 1h1m0s",
		},
		"a total that waits": {
			readyAfter(agent(gain, AgentTotal), minute), "ready_after",
			`only applies to the measures "cpus" and "cpu_percent" of single members`,
		},
		"a query that waits": {
			readyAfter(prometheus("http://10.0.0.5:9090", "up"), minute), "ready_after", "ready_after is 1m0s",
		},
		"all members": {agent(gain, AgentTotal), "", ""},
		"a query":     {prometheus("https://prometheus.example.com/prometheus/", "up"), "", ""},
		"a query, for an hour": {
			window(prometheus("http://10.0.0.5:9090", "up"), 60*minute, AggregateP95), "", "",
		},
		"a mean of one value":   {aggregated(prometheus("http://10.0.0.5:9090", "up"), AggregateMean), "", ""},
		"a queue by HTTP":       {http("http://[::1]:15672/api/queues?vhost=a"), "", ""},
		"a queue in Redis":      {redis("redis:6379", "jobs", 0), "", ""},
		"a queue in a database": {redis("[::1]:6379", "jobs", 15), "", ""},
		"a queue of a command": {
			from(ScalingSource{Queue: &QueueSource{Command: []string{"wc", "-l", "jobs"}}}), "", "",
		},
		"steps": {window(steps, minute, AggregateMean), "", ""},
		"steps in two kinds of lines": {
			progress(ProgressSource{Pattern: `epoch (?P<step>\d+)|it (?P<step>\d+)`}), "", "",
		},
		"lines":     {progress(ProgressSource{Pattern: "done"}), "", ""},
		"a ratio":   {ScalingMetric{Algorithm: ratio}, "", ""},
		"a program": {ScalingMetric{Algorithm: external}, "", ""},
		"no source": {
			ScalingMetric{Algorithm: mean}, "source", `one of ["agent" "prometheus" "queue" "progress"]`,
		},
		"two sources": {ScalingMetric{Algorithm: gain, Source: ScalingSource{
			Prometheus: prometheus("http://a", "up").Source.Prometheus, Progress: steps.Source.Progress,
		}}, "source", `got ["prometheus" "progress"]`},
		"a source of a ratio": {
			ScalingMetric{Algorithm: ratio, Source: steps.Source}, "source",
			`follows the number of members of another role; ["progress"] would never be read`,
		},
		"a source of a program": {
			ScalingMetric{Algorithm: external, Source: steps.Source}, "source", "needs no source",
		},
		"a window of a ratio": {
			ScalingMetric{Algorithm: ratio, Window: &minute}, "window", "another role, and aggregates nothing",
		},
		"a maximum of a program": {
			ScalingMetric{Algorithm: external, Aggregation: AggregateLast}, "window",
			"leave window and aggregation out",
		},
		"an unknown measure": {
			from(ScalingSource{Agent: &AgentSource{Measure: "cpu"}}), "source.agent.measure",
			`unknown measure "cpu"; use one of ["cpus" "cpu_percent"`,
		},
		"of nobody": {
			from(ScalingSource{Agent: &AgentSource{Measure: AgentCPUs, Of: "all"}}), "source.agent.of",
			`use one of ["member" "total"]`,
		},
		"gain of members": {agent(gain, ""), "source.agent.of", `set of = "total"`},
		"a total of means": {
			agent(total, AgentMember), "source.agent.of", `set of = "total", or per = "mean"`,
		},
		"a risk of means": {
			agent(ScalingAlgorithm{Risk: &RiskAlgorithm{Percent: 1, Capacity: 1, Per: TargetTotal}}, AgentMember),
			"source.agent.of", `set of = "total", or per = "mean"`,
		},
		"a risk of totals": {
			agent(ScalingAlgorithm{Risk: &RiskAlgorithm{Percent: 1}}, AgentTotal), "source.agent.of",
			`set of = "member", or per = "total"`,
		},
		"a mean of totals": {
			agent(mean, AgentTotal), "source.agent.of", `set of = "member", or per = "total"`,
		},
		"a short window": {
			window(agent(mean, ""), minute/61, ""), "window", "must be between 1s and 10m0s, got 983.606557ms",
		},
		"longer than agents remember": {
			window(agent(mean, ""), 11*minute, ""), "window", "must be between 1s and 10m0s, got 11m0s",
		},
		"a long window": {
			window(prometheus("http://a", "up"), 61*minute, ""), "window", "must be between 1s and 1h0m0s",
		},
		"an unknown aggregation": {
			window(prometheus("http://a", "up"), minute, "median"), "aggregation",
			`unknown aggregation "median"; use one of ["mean" "max" "p95" "last"]`,
		},
		"a maximum of one value": {
			aggregated(prometheus("http://a", "up"), AggregateMax), "aggregation",
			"without a window there is only one value",
		},
		"a maximum of progress": {
			window(steps, minute, AggregateMax), "aggregation", "progress is always the mean rate over its window",
		},
		"a Prometheus without scheme": {
			prometheus("prometheus:9090", "up"), "source.prometheus.url",
			`"prometheus:9090" is not a valid URL; use http:// or https:// with a host`,
		},
		"a Prometheus with more": {
			prometheus("http://prometheus:9090/graph?g0.expr=up", "up"), "source.prometheus.url",
			"must have only a scheme, host, port and path",
		},
		"a Prometheus nowhere": {prometheus("", "up"), "source.prometheus.url", `"" is not a valid URL`},
		"no query": {
			prometheus("http://a", ""), "source.prometheus.query",
			`must be a PromQL query that returns one value, such as "sum(rate(requests_total[1m]))", got ""`,
		},
		"no queue": {
			from(ScalingSource{Queue: &QueueSource{}}), "source.queue",
			`exactly one of ["http" "redis" "command"] is required, got []`,
		},
		"two queues": {
			from(ScalingSource{Queue: &QueueSource{HTTP: &HTTPQueue{URL: "http://a"}, Command: []string{"b"}}}),
			"source.queue", `got ["http" "command"]`,
		},
		"a file":              {http("file:///etc/passwd"), "source.queue.http.url", "is not a valid URL"},
		"a port out of range": {http("http://a:65536/"), "source.queue.http.url", "is not a valid URL"},
		"a fragment":          {http("http://a/#b"), "source.queue.http.url", "is not a valid URL"},
		"a password": {
			http("http://ops:verysecret@a/"), "source.queue.http.url", "the URL must not contain a user or password",
		},
		"a password without address": {
			http("ops:verysecret@a"), "source.queue.http.url", "not shown, as it may contain a password",
		},
		"a broken password": {
			http("http://ops:very%secret@a"), "source.queue.http.url", "not shown, as it may contain a password",
		},
		"no port": {
			redis("redis", "jobs", 0), "source.queue.redis.address",
			`"redis" is not <host>:<port>, such as "redis:6379"`,
		},
		"no host": {
			redis(":6379", "jobs", 0), "source.queue.redis.address", `":6379" is not <host>:<port>`,
		},
		"a named port": {
			redis("redis:redis", "jobs", 0), "source.queue.redis.address", `"redis:redis" is not <host>:<port>`,
		},
		"a URL of Redis": {
			redis("redis://:verysecret@redis:6379/0", "jobs", 0), "source.queue.redis.address",
			"not shown, as it may contain a password",
		},
		"no key": {
			redis("redis:6379", "", 0), "source.queue.redis.key", `must be the name of a list, such as "jobs", got ""`,
		},
		"a database below 0": {
			redis("redis:6379", "jobs", -1), "source.queue.redis.database", "must be 0 or more, got -1",
		},
		"a command without program": {
			from(ScalingSource{Queue: &QueueSource{Command: []string{" ", "-l"}}}), "source.queue.command",
			`must be the name or path of a program, followed by its arguments, got [" " "-l"]`,
		},
		"a pattern of all lines": {
			progress(ProgressSource{}), "source.progress.pattern",
			`"" is not a valid pattern for lines with progress: it matches every line`,
		},
		"a pattern that is none": {
			progress(ProgressSource{Pattern: "step ("}), "source.progress.pattern", "missing closing )",
		},
		"progress of no role": {
			progress(ProgressSource{Pattern: "done", Role: "Worker"}), "source.progress.role",
			`"Worker" is not a DNS label`,
		},
		"progress combined wrongly": {
			progress(ProgressSource{Pattern: "done", Combine: "median"}), "source.progress.combine",
			`use one of ["sum" "mean" "max"]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := AutoscalingPolicy{
				Group: "g", Role: "r", Min: 1, Max: 2, Metrics: map[string]ScalingMetric{"m": test.metric},
			}
			ps := append(p.Validate(), p.ValidateSources()...)
			if test.path == "" {
				if len(ps) > 0 {
					t.Errorf("problems of sources without any:\n%v", ps)
				}
				return
			}
			if len(ps) != 1 {
				t.Fatalf("%d problems, want one at %s:\n%v", len(ps), test.path, ps)
			}
			if got, want := ps[0].Path.String(), `metrics["m"].`+test.path; got != want {
				t.Errorf("the path is %s, want %s", got, want)
			}
			if detail := ps[0].Detail; !strings.Contains(detail, test.detail) || strings.Contains(detail, "%!") ||
				strings.Contains(detail, "verysecret") {
				t.Errorf("the detail is %q, want one with %q", detail, test.detail)
			}
		})
	}
}

// TestSourcesAreOfPoliciesThatRun checks that a policy that is only backtested needs no source.
func TestSourcesAreOfPoliciesThatRun(t *testing.T) {
	p := AutoscalingPolicy{
		Group: "g", Role: "r", Min: 1, Max: 2,
		Metrics: map[string]ScalingMetric{"m": targetMetric(TargetAlgorithm{Value: 1})},
	}
	if ps := p.Validate(); len(ps) > 0 {
		t.Errorf("problems of a policy that is tried out:\n%v", ps)
	}
	if ps := p.ValidateSources(); len(ps) != 1 {
		t.Errorf("problems of one that is run:\n%v", ps)
	}
}

// FuzzCheckURL checks that an accepted URL can be requested and has no password, and that no problem reveals one.
func FuzzCheckURL(f *testing.F) {
	for _, text := range []string{
		"http://a", "https://a:1/b?c#d", "http://u:p@a", "u:p@a", "http://[", "http://u:%@a", "//a", "http://a:0",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var ps Problems
		u := checkURL(&ps, Path{"url"}, text, "http://example")
		if (u == nil) != (len(ps) == 1) {
			t.Fatalf("%q is %v, with %v", text, u, ps)
		}
		if u != nil {
			again, err := url.Parse(u.String())
			if err != nil || again.User != nil || again.Hostname() == "" {
				t.Errorf("%q is accepted, and is %v, %v", text, again, err)
			}
			return
		}
		if _, secret, found := strings.Cut(text, "@"); found && secret != "" &&
			!strings.Contains("http://example", secret) && strings.Contains(ps[0].Detail, text) {
			t.Errorf("%q is shown: %s", text, ps[0].Detail)
		}
	})
}
