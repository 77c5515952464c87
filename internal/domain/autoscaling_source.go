package domain

import (
	"cmp"
	"strings"
	"time"
)

// ScalingSource is where the values of a metric come from: exactly one field is set.
type ScalingSource struct {
	Agent      *AgentSource      `json:"agent,omitempty"`
	Prometheus *PrometheusSource `json:"prometheus,omitempty"`
	Queue      *QueueSource      `json:"queue,omitempty"`
	Progress   *ProgressSource   `json:"progress,omitempty"`
}

// OfRequest reports whether the values are percentages of what members request.
func (s ScalingSource) OfRequest() bool {
	return s.Agent != nil && (s.Agent.Measure == AgentCPUPercent || s.Agent.Measure == AgentMemoryPercent)
}

// OfRole reports whether the source measures members of this role: without members, it has no value.
func (s ScalingSource) OfRole(role string) bool {
	return s.Agent != nil || s.Progress != nil && (s.Progress.Role == "" || s.Progress.Role == role)
}

// filled returns the source with the defaults filled in, for a policy of this role, and no white space around a query.
func (s ScalingSource) filled(role string) ScalingSource {
	if s.Agent != nil {
		agent := *s.Agent
		agent.Of = cmp.Or(agent.Of, AgentMember)
		s.Agent = &agent
	}
	if s.Prometheus != nil {
		query := *s.Prometheus
		query.Query = strings.TrimSpace(query.Query)
		s.Prometheus = &query
	}
	if s.Progress != nil {
		progress := *s.Progress
		progress.Role, progress.Combine = cmp.Or(progress.Role, role), cmp.Or(progress.Combine, CombineSum)
		s.Progress = &progress
	}
	return s
}

// DefaultAgentWindow is the time over which an agent's values are aggregated by default.
const DefaultAgentWindow = 30 * time.Second

// Aggregation turns the values of a window into one.
type Aggregation string

// The aggregations.
const (
	AggregateMean Aggregation = "mean"
	AggregateMax  Aggregation = "max"
	AggregateP95  Aggregation = "p95"
	AggregateLast Aggregation = "last"
)

// Aggregations lists the valid values.
var Aggregations = []Aggregation{AggregateMean, AggregateMax, AggregateP95, AggregateLast}

// AgentSource is what the hosts' agents measure of the role's members.
type AgentSource struct {
	Measure AgentMeasure `json:"measure"`
	// Of defaults to AgentMember.
	Of AgentOf `json:"of,omitempty"`
}

// OfProcessors reports whether the source measures CPU usage, some of which is due to starting.
func (s AgentSource) OfProcessors() bool {
	return s.Measure == AgentCPUs || s.Measure == AgentCPUPercent
}

// AgentMeasure is what an agent measures of a member.
type AgentMeasure string

// What agents measure.
const (
	// AgentCPUs is the number of busy CPUs, AgentCPUPercent that as a percentage of the CPUs that the role requests.
	AgentCPUs       AgentMeasure = "cpus"
	AgentCPUPercent AgentMeasure = "cpu_percent"
	// AgentMemoryMiB is the resident memory, AgentMemoryPercent that as a percentage of the role's request.
	AgentMemoryMiB     AgentMeasure = "memory_mib"
	AgentMemoryPercent AgentMeasure = "memory_percent"
	// AgentGPUPercent is the utilisation of the member's GPUs, averaged over them. Shared GPUs include the work of
	// others.
	AgentGPUPercent AgentMeasure = "gpu_percent"
	// AgentGPUMemoryMiB is the GPU memory that the member itself uses. AgentGPUMemoryPercent is how much of its GPUs'
	// memory is in use, whoever uses it.
	AgentGPUMemoryMiB     AgentMeasure = "gpu_memory_mib"
	AgentGPUMemoryPercent AgentMeasure = "gpu_memory_percent"
)

// AgentMeasures lists the valid values.
var AgentMeasures = []AgentMeasure{
	AgentCPUs, AgentCPUPercent, AgentMemoryMiB, AgentMemoryPercent, AgentGPUPercent, AgentGPUMemoryMiB,
	AgentGPUMemoryPercent,
}

// AgentOf says whose value is used.
type AgentOf string

// Whose value can be used.
const (
	// AgentMember uses each member's own value, and the mean of them.
	AgentMember AgentOf = "member"
	// AgentTotal uses the sum over all members.
	AgentTotal AgentOf = "total"
)

// AgentOfs lists the valid values.
var AgentOfs = []AgentOf{AgentMember, AgentTotal}

// PrometheusSource is a PromQL query that returns one value.
type PrometheusSource struct {
	URL   string `json:"url"`
	Query string `json:"query"`
}

// QueueSource is the length of a queue: exactly one field is set.
type QueueSource struct {
	HTTP  *HTTPQueue  `json:"http,omitempty"`
	Redis *RedisQueue `json:"redis,omitempty"`
	// Command prints the length. The controller runs it.
	Command []string `json:"command,omitempty"`
}

// HTTPQueue is a number in the JSON that a URL returns.
type HTTPQueue struct {
	URL string `json:"url"`
	// Path locates the number in GJSON syntax, such as "queue.length"; empty means the whole response.
	Path string `json:"path,omitempty"`
}

// RedisQueue is the length of a Redis list.
type RedisQueue struct {
	// Address is <host>:<port>.
	Address  string `json:"address"`
	Key      string `json:"key"`
	Database int    `json:"database,omitempty"`
}

// ProgressSource is how fast members progress, in steps per second, read from their logs.
type ProgressSource struct {
	// Pattern is a regular expression in Go's syntax. A group named "step" captures the step number, which counts up;
	// without one, each matching line is one step.
	Pattern string `json:"pattern"`
	// Role is the role whose logs are read; empty means the policy's own.
	Role string `json:"role,omitempty"`
	// Combine defaults to CombineSum.
	Combine Combine `json:"combine,omitempty"`
}

// Combine turns the progress of the members into one value.
type Combine string

// How the progress of members is combined.
const (
	// CombineSum is for members that work on separate steps. CombineMean and CombineMax are for members that report the
	// same steps: CombineMean needs all of them to report, which shows that all are working, CombineMax just one.
	CombineSum  Combine = "sum"
	CombineMean Combine = "mean"
	CombineMax  Combine = "max"
)

// Combines lists the valid values.
var Combines = []Combine{CombineSum, CombineMean, CombineMax}

// ScalingHook is a program or endpoint of the user's: a URL that receives JSON by POST, or a command that receives it
// on standard input. Exactly one of the two is set.
type ScalingHook struct {
	URL     string   `json:"url,omitempty"`
	Command []string `json:"command,omitempty"`
	// Timeout defaults to DefaultHookTimeout.
	Timeout *Duration `json:"timeout,omitempty"`
}

// DefaultHookTimeout is how long a hook may take by default.
const DefaultHookTimeout = 10 * time.Second

// Limit returns how long the hook may take, with the default filled in.
func (h ScalingHook) Limit() time.Duration { return h.Timeout.Or(DefaultHookTimeout) }
