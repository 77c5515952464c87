package policy

import (
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

// defaultTimeout limits each operation on an autoscaling policy.
const defaultTimeout = 10 * time.Minute

// Model is trainyard_autoscaling_policy.
type Model struct {
	ScalingModel

	ID        types.String                   `tfsdk:"id"`
	Cluster   resourcekit.ClusterReference   `tfsdk:"cluster"`
	Group     types.String                   `tfsdk:"group"`
	Role      types.String                   `tfsdk:"role"`
	Metrics   map[string]MeasuredMetricModel `tfsdk:"metrics"`
	Guards    *ScalingGuardsModel            `tfsdk:"guards"`
	Hooks     *ScalingHooksModel             `tfsdk:"hooks"`
	Vertical  *VerticalModel                 `tfsdk:"vertical"`
	DryRun    *bool                          `tfsdk:"dry_run"`
	Paused    *string                        `tfsdk:"paused"`
	OnDestroy *string                        `tfsdk:"on_destroy"`
	Timeouts  timeouts.Value                 `tfsdk:"timeouts"`
}

// MeasuredMetricModel is a metric with a source.
type MeasuredMetricModel struct {
	ScalingMetricModel

	Source      *ScalingSourceModel `tfsdk:"source"`
	Window      types.String        `tfsdk:"window"`
	Aggregation *string             `tfsdk:"aggregation"`
	ReadyAfter  types.String        `tfsdk:"ready_after"`
}

// ScalingSourceModel is the source of a metric.
type ScalingSourceModel struct {
	Agent      *AgentSourceModel      `tfsdk:"agent"`
	Prometheus *PrometheusSourceModel `tfsdk:"prometheus"`
	Queue      *QueueSourceModel      `tfsdk:"queue"`
	Progress   *ProgressSourceModel   `tfsdk:"progress"`
}

// AgentSourceModel is a measure of the agents.
type AgentSourceModel struct {
	Measure string       `tfsdk:"measure"`
	Of      *string      `tfsdk:"of"`
	Window  types.String `tfsdk:"window"` // always null, see misplaced
}

// PrometheusSourceModel is a Prometheus query.
type PrometheusSourceModel struct {
	URL   string `tfsdk:"url"`
	Query string `tfsdk:"query"`
}

// QueueSourceModel is the length of a queue.
type QueueSourceModel struct {
	HTTP    *HTTPQueueModel  `tfsdk:"http"`
	Redis   *RedisQueueModel `tfsdk:"redis"`
	Command []string         `tfsdk:"command"`
}

// HTTPQueueModel is a queue that is read by HTTP.
type HTTPQueueModel struct {
	URL  string  `tfsdk:"url"`
	Path *string `tfsdk:"path"`
}

// RedisQueueModel is a Redis list.
type RedisQueueModel struct {
	Address  string `tfsdk:"address"`
	Key      string `tfsdk:"key"`
	Database *int64 `tfsdk:"database"`
}

// ProgressSourceModel is the progress that members log.
type ProgressSourceModel struct {
	Pattern string       `tfsdk:"pattern"`
	Role    *string      `tfsdk:"role"`
	Combine *string      `tfsdk:"combine"`
	Window  types.String `tfsdk:"window"`
}

// ScalingGuardsModel is what prevents a policy from removing members.
type ScalingGuardsModel struct {
	Busy              *BusyGuardModel   `tfsdk:"busy"`
	AtLeast           *GuardSourceModel `tfsdk:"at_least"`
	Remove            *string           `tfsdk:"remove"`
	MemberHoursPerDay types.Float64     `tfsdk:"member_hours_per_day"`
}

// ScalingHooksModel is the hooks for members that are removed or were added.
type ScalingHooksModel struct {
	BeforeRemoval *HookModel `tfsdk:"before_removal"`
	AfterAddition *HookModel `tfsdk:"after_addition"`
}

// BusyGuardModel is how to find out whether members are busy.
type BusyGuardModel struct {
	GuardSourceModel

	CPUPercent types.Float64 `tfsdk:"cpu_percent"`
	GPUPercent types.Float64 `tfsdk:"gpu_percent"`
	Pauses     *string       `tfsdk:"pauses"`
}

// GuardSourceModel is what a guard asks.
type GuardSourceModel struct {
	Prometheus *PrometheusSourceModel `tfsdk:"prometheus"`
	HTTP       *HTTPQueueModel        `tfsdk:"http"`
}

func (m Model) address() resourcekit.PolicyAddress {
	return resourcekit.PolicyAddress{
		Cluster: resourcekit.IDOf(m.Cluster.Key()), Key: domain.PolicyKey(m.Group.ValueString(), m.Role.ValueString()),
	}
}

// InCluster returns the cluster that it belongs to.
func (m Model) InCluster() resourcekit.ClusterReference { return m.Cluster }

// Limits returns the configured timeouts.
func (m Model) Limits() timeouts.Value { return m.Timeouts }

// IdentityData returns the resource's identity.
func (m Model) IdentityData() any { return identity{m.Cluster.Name, m.Group, m.Role} }

// Title names the resource in errors.
func (m Model) Title() string {
	return fmt.Sprintf("autoscaling policy %q", domain.PolicyKey(m.Group.ValueString(), m.Role.ValueString()))
}

// Expand returns the policy that a configuration specifies.
func (m Model) Expand(diags *diag.Diagnostics) (policy domain.AutoscalingPolicy) {
	resourcekit.Expand(&policy, m, diags)
	return policy
}

// Flatten returns a policy as stored, in the spelling and with the timeouts of prior.
func Flatten(p domain.AutoscalingPolicy, prior Model) Model {
	m := resourcekit.Flatten(p, prior)
	m.ID = types.StringValue(p.ID())
	return m
}
