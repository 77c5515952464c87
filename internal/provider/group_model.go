package provider

import (
	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

type groupModel struct {
	ID        types.String     `tfsdk:"id"`
	Cluster   clusterReference `tfsdk:"cluster"`
	Name      types.String     `tfsdk:"name"`
	Framework types.String     `tfsdk:"framework"`
	templateModel
	Roles        map[string]roleModel `tfsdk:"roles"`
	Completion   *completionModel     `tfsdk:"completion"`
	RestartScope types.String         `tfsdk:"restart_scope"`
	WaitFor      types.String         `tfsdk:"wait_for"`
	Triggers     types.Map            `tfsdk:"triggers"`
	Members      types.Map            `tfsdk:"members"`
	Placements   types.Map            `tfsdk:"placements"`
	ClusterSpec  types.Map            `tfsdk:"cluster_spec"`
	Timeouts     timeouts.Value       `tfsdk:"timeouts"`
}

type templateModel struct {
	Image      *string           `tfsdk:"image"`
	Command    []string          `tfsdk:"command"`
	Args       []string          `tfsdk:"args"`
	Env        map[string]string `tfsdk:"env"`
	WorkingDir *string           `tfsdk:"working_dir"`
	Mounts     []mountModel      `tfsdk:"mounts"`
	Container  *containerModel   `tfsdk:"container"`
}

type mountModel struct {
	Type     *string `tfsdk:"type"`
	Source   *string `tfsdk:"source"`
	Target   string  `tfsdk:"target"`
	ReadOnly *bool   `tfsdk:"read_only"`
	SizeMiB  *int64  `tfsdk:"size_mib"`
}

type roleModel struct {
	Replicas *int64  `tfsdk:"replicas"`
	OnScale  *string `tfsdk:"on_scale"`
	Port     *int64  `tfsdk:"port"`
	templateModel
	Resources   *resourcesModel `tfsdk:"resources"`
	GPUs        *roleGPUsModel  `tfsdk:"gpus"`
	Placement   *placementModel `tfsdk:"placement"`
	Restart     *restartModel   `tfsdk:"restart"`
	ExitCodes   *exitCodesModel `tfsdk:"exit_codes"`
	GracePeriod types.String    `tfsdk:"grace_period"`
	Update      *updateModel    `tfsdk:"update"`
}

type updateModel struct {
	Parallelism *int64       `tfsdk:"parallelism"`
	Delay       types.String `tfsdk:"delay"`
	OnFailure   *string      `tfsdk:"on_failure"`
}

type resourcesModel struct {
	CPUs      types.Float64 `tfsdk:"cpus"`
	MemoryMiB *int64        `tfsdk:"memory_mib"`
	Limits    *limitsModel  `tfsdk:"limits"`
}

type limitsModel struct {
	CPUs      types.Float64 `tfsdk:"cpus"`
	MemoryMiB *int64        `tfsdk:"memory_mib"`
}

type roleGPUsModel struct {
	Pool      string `tfsdk:"pool"`
	Count     *int64 `tfsdk:"count"`
	MemoryMiB *int64 `tfsdk:"memory_mib"`
}

type placementModel struct {
	Strategy *string           `tfsdk:"strategy"`
	Labels   map[string]string `tfsdk:"labels"`
	Hosts    []string          `tfsdk:"hosts"`
}

type restartModel struct {
	Condition   *string      `tfsdk:"condition"`
	MaxAttempts *int64       `tfsdk:"max_attempts"`
	Delay       types.String `tfsdk:"delay"`
}

type exitCodesModel struct {
	Final []string `tfsdk:"final"`
}

type completionModel struct {
	When     *string      `tfsdk:"when"`
	Roles    []string     `tfsdk:"roles"`
	Deadline types.String `tfsdk:"deadline"`
	StopRest *bool        `tfsdk:"stop_rest"`
}

func (m groupModel) identity() identity { return identity{m.Cluster.Name, m.Name} }

// Defaults of the group's attributes.
const (
	defaultFramework    = "none"
	defaultRestartScope = string(domain.ScopeMember)
	defaultWaitFor      = string(domain.WaitRunning)
)

// expand returns the group as it is specified. Triggers that are unknown are left out: only that they change matters.
func (m groupModel) expand(diags *diag.Diagnostics) domain.Group {
	group := domain.Group{
		Framework: defaultFramework, Roles: map[string]domain.Role{}, RestartScope: domain.ScopeMember, WaitFor: domain.WaitRunning,
	}
	expandInto(&group, m, diags)
	return group
}

func stringOr(s types.String, fallback string) string {
	if s.ValueString() == "" {
		return fallback
	}
	return s.ValueString()
}

// flattenGroup returns a group as it was read, in the spelling of prior. What drifted shows: what somebody else changed has its
// live value where the group declares it, a number of replicas is that of the members found, and only members that are
// as specified, or of which the change shows, are listed. Members that should not be there
// are listed, too, and the cluster specification is empty while an apply has not come to its end: either makes a
// difference that the next apply takes away. While a policy changes a count, the group is shown as it will be.
func flattenGroup(group reconcile.Group, prior groupModel) groupModel {
	if group.Document.Scaling {
		m := flatten(group.Document.Spec, prior)
		m.ID = types.StringValue(domain.GroupID(group.Document.Spec.Cluster, group.Document.Spec.Name))
		list := listed(group.Members)
		m.Members, m.Placements, m.ClusterSpec = stringMap(list.addresses), stringMap(list.places), stringMap(group.Layout.ClusterSpec())
		return m
	}
	m := flatten(group.Found(), prior)
	m.ID = types.StringValue(domain.GroupID(group.Document.Spec.Cluster, group.Document.Spec.Name))

	extra := map[string]domain.Observed{}
	for _, o := range group.Observed {
		extra[o.Name] = o
	}
	for _, member := range group.Members {
		delete(extra, member.Name)
	}
	distributed := map[string]bool{}
	for _, member := range group.Members {
		distributed[member.Role] = member.Shared()
	}
	members := listed(reconcile.UpToDate(group.Decision, group.Observed))
	for name, o := range extra {
		members.addresses[name] = o.Address
		if o.Host != "" && !distributed[o.Role] {
			members.places[name] = o.Host
		}
	}
	m.Members, m.Placements = stringMap(members.addresses), stringMap(members.places)
	m.ClusterSpec = stringMap(nil)
	if !group.Document.Applying {
		m.ClusterSpec = stringMap(group.Layout.ClusterSpec())
	}
	return m
}

// memberList is what a resource shows of members, by name. It has no places of those that the engine distributes: they change by themselves.
type memberList struct{ addresses, places map[string]string }

func listed(members []domain.Member) memberList {
	list := memberList{make(map[string]string, len(members)), make(map[string]string, len(members))}
	for _, m := range members {
		list.addresses[m.Name] = m.Address
		if !m.Shared() { // or else the engine chooses it
			list.places[m.Name] = placeOf(m)
		}
	}
	return list
}

// placeOf says where a member is, and which GPUs it has there.
func placeOf(m domain.Member) string { return domain.Assignment{Host: m.Host, GPUs: m.GPUs}.Place() }
