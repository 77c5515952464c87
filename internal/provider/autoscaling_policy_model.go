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
func (m autoscalingPolicyModel) expand(diags *diag.Diagnostics) domain.AutoscalingPolicy {
	policy := m.scalingModel.expand(diags)
	policy.Cluster, policy.Group, policy.Role = m.Cluster.Name.ValueString(), m.Group.ValueString(), m.Role.ValueString()
	policy.Metrics = convertMap(m.Metrics, func(metric measuredMetricModel) domain.ScalingMetric { return metric.expand(diags) })
	policy.Guards = m.Guards.expand(diags)
	policy.DryRun, policy.Paused, policy.OnDestroy = value(m.DryRun), domain.ScalingPause(value(m.Paused)), domain.OnDestroy(value(m.OnDestroy))
	return policy
}

func (m measuredMetricModel) expand(diags *diag.Diagnostics) domain.ScalingMetric {
	metric := m.scalingMetricModel.expand(diags)
	metric.Source, metric.Window, metric.Aggregation = m.Source.expand(), duration(m.Window, diags), domain.Aggregation(value(m.Aggregation))
	return metric
}

func (m *scalingSourceModel) expand() domain.ScalingSource {
	var source domain.ScalingSource
	if m == nil {
		return source
	}
	if s := m.Agent; s != nil {
		source.Agent = &domain.AgentSource{Measure: domain.AgentMeasure(s.Measure), Of: domain.AgentOf(value(s.Of))}
	}
	source.Prometheus = m.Prometheus.expand()
	if s := m.Queue; s != nil {
		source.Queue = &domain.QueueSource{Command: compact(s.Command)}
		if q := s.HTTP; q != nil {
			source.Queue.HTTP = &domain.HTTPQueue{URL: q.URL, Path: value(q.Path)}
		}
		if q := s.Redis; q != nil {
			source.Queue.Redis = &domain.RedisQueue{Address: q.Address, Key: q.Key, Database: int(value(q.Database))}
		}
	}
	if s := m.Progress; s != nil {
		source.Progress = &domain.ProgressSource{Pattern: s.Pattern, Role: value(s.Role), Combine: domain.Combine(value(s.Combine))}
	}
	return source
}

func (m *prometheusSourceModel) expand() *domain.PrometheusSource {
	if m == nil {
		return nil
	}
	return &domain.PrometheusSource{URL: m.URL, Query: m.Query}
}

func (m *scalingGuardsModel) expand(diags *diag.Diagnostics) domain.ScalingGuards {
	if m == nil {
		return domain.ScalingGuards{}
	}
	guards := domain.ScalingGuards{Remove: domain.RemovalOrder(value(m.Remove)), MemberHoursPerDay: m.MemberHoursPerDay.ValueFloat64()}
	if b := m.Busy; b != nil {
		guards.Busy = &domain.BusyGuard{Prometheus: b.Prometheus.expand(), CPUPercent: b.CPUPercent.ValueFloat64Pointer(), GPUPercent: b.GPUPercent.ValueFloat64Pointer()}
	}
	if m.Drain != nil {
		guards.Drain = new(m.Drain.expand(diags))
	}
	return guards
}

// flattenAutoscalingPolicy returns a policy as it is stored, in the spelling of prior; timeouts are prior's.
func flattenAutoscalingPolicy(p domain.AutoscalingPolicy, prior autoscalingPolicyModel) autoscalingPolicyModel {
	return autoscalingPolicyModel{
		scalingModel: flattenScaling(p, prior.scalingModel),
		ID:           types.StringValue(p.ID()),
		Cluster:      clusterReference{Name: types.StringValue(p.Cluster), Engine: types.StringValue(prior.Cluster.key().Engine), Endpoint: prior.Cluster.Endpoint},
		Group:        types.StringValue(p.Group), Role: types.StringValue(p.Role),
		Metrics: flattenMap(p.Metrics, prior.Metrics, flattenMeasuredMetric),
		Guards:  flattenGuards(p.Guards, prior.Guards),
		DryRun:  keepZero(p.DryRun, prior.DryRun), Paused: keepZero(string(p.Paused), prior.Paused), OnDestroy: keepZero(string(p.OnDestroy), prior.OnDestroy),
		Timeouts: prior.Timeouts,
	}
}

func flattenMeasuredMetric(metric domain.ScalingMetric, prior measuredMetricModel) measuredMetricModel {
	return measuredMetricModel{
		scalingMetricModel: flattenScalingMetric(metric, prior.scalingMetricModel), Source: flattenSource(metric.Source, prior.Source),
		Window: keepDuration(metric.Window, prior.Window), Aggregation: keepZero(string(metric.Aggregation), prior.Aggregation),
	}
}

func flattenSource(source domain.ScalingSource, prior *scalingSourceModel) *scalingSourceModel {
	before := value(prior)
	m := scalingSourceModel{Prometheus: flattenPrometheusSource(source.Prometheus)}
	if s := source.Agent; s != nil {
		m.Agent = &agentSourceModel{Measure: string(s.Measure), Of: keepZero(string(s.Of), value(before.Agent).Of)}
	}
	if s := source.Queue; s != nil {
		was := value(before.Queue)
		m.Queue = &queueSourceModel{Command: keepList(s.Command, was.Command)}
		if q := s.HTTP; q != nil {
			m.Queue.HTTP = &httpQueueModel{URL: q.URL, Path: keepZero(q.Path, value(was.HTTP).Path)}
		}
		if q := s.Redis; q != nil {
			m.Queue.Redis = &redisQueueModel{Address: q.Address, Key: q.Key, Database: keepZero(int64(q.Database), value(was.Redis).Database)}
		}
	}
	if s := source.Progress; s != nil {
		was := value(before.Progress)
		m.Progress = &progressSourceModel{Pattern: s.Pattern, Role: keepZero(s.Role, was.Role), Combine: keepZero(string(s.Combine), was.Combine)}
	}
	return keepObject(m, prior)
}

func flattenPrometheusSource(s *domain.PrometheusSource) *prometheusSourceModel {
	if s == nil {
		return nil
	}
	return &prometheusSourceModel{URL: s.URL, Query: s.Query}
}

func flattenGuards(g domain.ScalingGuards, prior *scalingGuardsModel) *scalingGuardsModel {
	before := value(prior)
	m := scalingGuardsModel{Remove: keepZero(string(g.Remove), before.Remove), MemberHoursPerDay: keepZeroNumber(g.MemberHoursPerDay, before.MemberHoursPerDay)}
	if b := g.Busy; b != nil {
		was := value(before.Busy)
		m.Busy = &busyGuardModel{
			Prometheus: flattenPrometheusSource(b.Prometheus), CPUPercent: keepNumber(b.CPUPercent, was.CPUPercent), GPUPercent: keepNumber(b.GPUPercent, was.GPUPercent),
		}
	}
	if g.Drain != nil {
		m.Drain = new(flattenHook(*g.Drain, value(before.Drain)))
	}
	return keepObject(m, prior)
}
