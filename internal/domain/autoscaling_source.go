package domain

import "time"

// ScalingSource is where the values of a metric come from: exactly one of its fields is set.
type ScalingSource struct {
	Agent      *AgentSource      `json:"agent,omitempty"`
	Prometheus *PrometheusSource `json:"prometheus,omitempty"`
	Queue      *QueueSource      `json:"queue,omitempty"`
	Progress   *ProgressSource   `json:"progress,omitempty"`
}

// OfRequest reports whether the values are in percent of what members request.
func (s ScalingSource) OfRequest() bool {
	return s.Agent != nil && (s.Agent.Measure == AgentCPUPercent || s.Agent.Measure == AgentMemoryPercent)
}

// DefaultAgentWindow is the time over which an agent's values are aggregated.
const DefaultAgentWindow = 30 * time.Second

// Aggregation makes one value of those of a window.
type Aggregation string

// The aggregations.
const (
	AggregateMean Aggregation = "mean"
	AggregateMax  Aggregation = "max"
	AggregateP95  Aggregation = "p95"
	AggregateLast Aggregation = "last"
)

// Aggregations lists what a metric may name.
var Aggregations = []Aggregation{AggregateMean, AggregateMax, AggregateP95, AggregateLast}

// AgentSource is what the hosts' agents measure of the role's members.
type AgentSource struct {
	Measure AgentMeasure `json:"measure"`
	// Of is AgentMember where it is empty.
	Of AgentOf `json:"of,omitempty"`
}

// OfProcessors reports whether the measure is of processors, of which starting takes some.
func (s AgentSource) OfProcessors() bool {
	return s.Measure == AgentCPUs || s.Measure == AgentCPUPercent
}

// AgentMeasure is what an agent measures of a member.
type AgentMeasure string

// What agents measure.
const (
	// AgentCPUs is the number of processors that are busy, and AgentCPUPercent that in percent of those that the role
	// requests.
	AgentCPUs       AgentMeasure = "cpus"
	AgentCPUPercent AgentMeasure = "cpu_percent"
	// AgentMemoryMiB is the resident memory, and AgentMemoryPercent that in percent of what the role requests.
	AgentMemoryMiB     AgentMeasure = "memory_mib"
	AgentMemoryPercent AgentMeasure = "memory_percent"
	// AgentGPUPercent is how much of the time the member's GPUs were working, the mean of them. Others may work on
	// those that are shared.
	AgentGPUPercent AgentMeasure = "gpu_percent"
	// AgentGPUMemoryMiB is what the member uses of the memory of GPUs, and AgentGPUMemoryPercent what is used, by
	// whomever, of that of its GPUs.
	AgentGPUMemoryMiB     AgentMeasure = "gpu_memory_mib"
	AgentGPUMemoryPercent AgentMeasure = "gpu_memory_percent"
)

// AgentMeasures lists what a source may name.
var AgentMeasures = []AgentMeasure{
	AgentCPUs, AgentCPUPercent, AgentMemoryMiB, AgentMemoryPercent, AgentGPUPercent, AgentGPUMemoryMiB, AgentGPUMemoryPercent,
}

// AgentOf says whose the value is.
type AgentOf string

// Whose a value may be.
const (
	// AgentMember is each member's by itself, and the mean of them.
	AgentMember AgentOf = "member"
	// AgentTotal is the sum of all members'.
	AgentTotal AgentOf = "total"
)

// AgentOfs lists what a source may name.
var AgentOfs = []AgentOf{AgentMember, AgentTotal}

// PrometheusSource is a query, in PromQL, that returns one value.
type PrometheusSource struct {
	URL   string `json:"url"`
	Query string `json:"query"`
}

// QueueSource is the length of a queue: exactly one of its fields is set.
type QueueSource struct {
	HTTP  *HTTPQueue  `json:"http,omitempty"`
	Redis *RedisQueue `json:"redis,omitempty"`
	// Command prints the length. It is run by the controller.
	Command []string `json:"command,omitempty"`
}

// HTTPQueue is a number in the JSON that an address answers with.
type HTTPQueue struct {
	URL string `json:"url"`
	// Path is where the number is, in the syntax of GJSON, such as "queue.length"; the whole answer where it is empty.
	Path string `json:"path,omitempty"`
}

// RedisQueue is the length of a list in Redis.
type RedisQueue struct {
	// Address is <host>:<port>.
	Address  string `json:"address"`
	Key      string `json:"key"`
	Database int    `json:"database,omitempty"`
}

// ProgressSource is how fast members get on, in steps a second, by the lines of their logs.
type ProgressSource struct {
	// Pattern is a regular expression in Go's syntax. Where it has a group named "step", that is the number of the
	// step, which counts up; else each line that it matches is one step.
	Pattern string `json:"pattern"`
	// Role is whose logs are read; that of the policy where it is empty.
	Role string `json:"role,omitempty"`
	// Combine is CombineSum where it is empty.
	Combine Combine `json:"combine,omitempty"`
}

// Combine makes one progress of that of the members.
type Combine string

// How the progress of members is combined.
const (
	// CombineSum is for members that work on steps of their own. CombineMean and CombineMax are for those that tell of
	// the same steps: by CombineMean all of them have to, and so all are at work; by CombineMax one is enough.
	CombineSum  Combine = "sum"
	CombineMean Combine = "mean"
	CombineMax  Combine = "max"
)

// Combines lists what a source may name.
var Combines = []Combine{CombineSum, CombineMean, CombineMax}

// ScalingHook is something of the user's that is asked or told: an address that is sent JSON by POST, or a command that
// finds it on its standard input. Exactly one of the two is set.
type ScalingHook struct {
	URL     string   `json:"url,omitempty"`
	Command []string `json:"command,omitempty"`
	// Timeout is DefaultHookTimeout where it is nil.
	Timeout *Duration `json:"timeout,omitempty"`
}

// DefaultHookTimeout is how long a hook may take.
const DefaultHookTimeout = 10 * time.Second

// Limit is how long the hook may take, with the default filled in.
func (h ScalingHook) Limit() time.Duration { return h.Timeout.Or(DefaultHookTimeout) }
