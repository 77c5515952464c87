package provider

import (
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// defaultAutoscalingPolicyTimeout bounds each operation on an autoscaling policy.
const defaultAutoscalingPolicyTimeout = 10 * time.Minute

// autoscalingPolicyModel is trainyard_autoscaling_policy.
type autoscalingPolicyModel struct {
	scalingModel

	ID        types.String                   `tfsdk:"id"`
	Cluster   clusterReference               `tfsdk:"cluster"`
	Group     types.String                   `tfsdk:"group"`
	Role      types.String                   `tfsdk:"role"`
	Metrics   map[string]measuredMetricModel `tfsdk:"metrics"`
	Guards    *scalingGuardsModel            `tfsdk:"guards"`
	DryRun    *bool                          `tfsdk:"dry_run"`
	Paused    *string                        `tfsdk:"paused"`
	OnDestroy *string                        `tfsdk:"on_destroy"`
	Timeouts  timeouts.Value                 `tfsdk:"timeouts"`
}

// measuredMetricModel is a metric that comes from somewhere.
type measuredMetricModel struct {
	scalingMetricModel

	Source      *scalingSourceModel `tfsdk:"source"`
	Window      types.String        `tfsdk:"window"`
	Aggregation *string             `tfsdk:"aggregation"`
}

type scalingSourceModel struct {
	Agent      *agentSourceModel      `tfsdk:"agent"`
	Prometheus *prometheusSourceModel `tfsdk:"prometheus"`
	Queue      *queueSourceModel      `tfsdk:"queue"`
	Progress   *progressSourceModel   `tfsdk:"progress"`
}

type agentSourceModel struct {
	Measure string  `tfsdk:"measure"`
	Of      *string `tfsdk:"of"`
}

type prometheusSourceModel struct {
	URL   string `tfsdk:"url"`
	Query string `tfsdk:"query"`
}

type queueSourceModel struct {
	HTTP    *httpQueueModel  `tfsdk:"http"`
	Redis   *redisQueueModel `tfsdk:"redis"`
	Command []string         `tfsdk:"command"`
}

type httpQueueModel struct {
	URL  string  `tfsdk:"url"`
	Path *string `tfsdk:"path"`
}

type redisQueueModel struct {
	Address  string `tfsdk:"address"`
	Key      string `tfsdk:"key"`
	Database *int64 `tfsdk:"database"`
}

type progressSourceModel struct {
	Pattern string  `tfsdk:"pattern"`
	Role    *string `tfsdk:"role"`
	Combine *string `tfsdk:"combine"`
}

type scalingGuardsModel struct {
	Busy              *busyGuardModel `tfsdk:"busy"`
	Remove            *string         `tfsdk:"remove"`
	Drain             *hookModel      `tfsdk:"drain"`
	MemberHoursPerDay types.Float64   `tfsdk:"member_hours_per_day"`
}

type busyGuardModel struct {
	Prometheus *prometheusSourceModel `tfsdk:"prometheus"`
	CPUPercent types.Float64          `tfsdk:"cpu_percent"`
	GPUPercent types.Float64          `tfsdk:"gpu_percent"`
}

// policyAddress is what tells a policy from all others.
type policyAddress struct {
	cluster clusterID
	key     string
}

func (m autoscalingPolicyModel) address() policyAddress {
	return policyAddress{idOf(m.Cluster.key()), domain.PolicyKey(m.Group.ValueString(), m.Role.ValueString())}
}

func (m autoscalingPolicyModel) identity() policyIdentity {
	return policyIdentity{m.Cluster.Name, m.Group, m.Role}
}

// expand returns the policy that a configuration specifies.
func (m autoscalingPolicyModel) expand(diags *diag.Diagnostics) (policy domain.AutoscalingPolicy) {
	expandInto(&policy, m, diags)
	return policy
}

// flattenAutoscalingPolicy returns a policy as it is stored, in the spelling of prior; timeouts are prior's.
func flattenAutoscalingPolicy(p domain.AutoscalingPolicy, prior autoscalingPolicyModel) autoscalingPolicyModel {
	m := flatten(p, prior)
	m.ID = types.StringValue(p.ID())
	return m
}
