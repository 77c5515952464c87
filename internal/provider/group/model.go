package group

import (
	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// Model is trainyard_group as Terraform keeps it.
type Model struct {
	ID        types.String                 `tfsdk:"id"`
	Cluster   resourcekit.ClusterReference `tfsdk:"cluster"`
	Name      types.String                 `tfsdk:"name"`
	Framework types.String                 `tfsdk:"framework"`
	TemplateModel
	Roles        map[string]RoleModel `tfsdk:"roles"`
	Completion   *CompletionModel     `tfsdk:"completion"`
	RestartScope types.String         `tfsdk:"restart_scope"`
	WaitFor      types.String         `tfsdk:"wait_for"`
	Triggers     types.Map            `tfsdk:"triggers"`
	Priority     *int64               `tfsdk:"priority"`
	Members      types.Map            `tfsdk:"members"`
	Placements   types.Map            `tfsdk:"placements"`
	ClusterSpec  types.Map            `tfsdk:"cluster_spec"`
	Timeouts     timeouts.Value       `tfsdk:"timeouts"`
}

// TemplateModel is what members run: of a group, or of one of its roles.
type TemplateModel struct {
	Image      *string           `tfsdk:"image"`
	Command    []string          `tfsdk:"command"`
	Args       []string          `tfsdk:"args"`
	Env        map[string]string `tfsdk:"env"`
	WorkingDir *string           `tfsdk:"working_dir"`
	Mounts     []MountModel      `tfsdk:"mounts"`
	Container  *ContainerModel   `tfsdk:"container"`
}

// MountModel is a mount of members.
type MountModel struct {
	Type     *string            `tfsdk:"type"`
	Source   *string            `tfsdk:"source"`
	Target   string             `tfsdk:"target"`
	ReadOnly *bool              `tfsdk:"read_only"`
	SizeMiB  *int64             `tfsdk:"size_mib"`
	Driver   *VolumeDriverModel `tfsdk:"driver"`
}

// VolumeDriverModel is the driver of a volume.
type VolumeDriverModel struct {
	Name    string            `tfsdk:"name"`
	Options map[string]string `tfsdk:"options"`
}

// RoleModel is a role of a group.
type RoleModel struct {
	Replicas *int64  `tfsdk:"replicas"`
	OnScale  *string `tfsdk:"on_scale"`
	Port     *int64  `tfsdk:"port"`
	TemplateModel
	Resources   *ResourcesModel `tfsdk:"resources"`
	GPUs        *RoleGPUsModel  `tfsdk:"gpus"`
	Placement   *PlacementModel `tfsdk:"placement"`
	Restart     *RestartModel   `tfsdk:"restart"`
	ExitCodes   *ExitCodesModel `tfsdk:"exit_codes"`
	GracePeriod types.String    `tfsdk:"grace_period"`
	Update      *UpdateModel    `tfsdk:"update"`
}

// UpdateModel is how a role's members are replaced.
type UpdateModel struct {
	Parallelism *int64       `tfsdk:"parallelism"`
	Delay       types.String `tfsdk:"delay"`
	OnFailure   *string      `tfsdk:"on_failure"`
}

// ResourcesModel is what a member reserves.
type ResourcesModel struct {
	CPUs      types.Float64 `tfsdk:"cpus"`
	MemoryMiB *int64        `tfsdk:"memory_mib"`
	Limits    *LimitsModel  `tfsdk:"limits"`
}

// LimitsModel is what a member may use at most.
type LimitsModel struct {
	CPUs      types.Float64 `tfsdk:"cpus"`
	MemoryMiB *int64        `tfsdk:"memory_mib"`
}

// RoleGPUsModel is which GPUs a role's members get.
type RoleGPUsModel struct {
	Pool      string `tfsdk:"pool"`
	Count     *int64 `tfsdk:"count"`
	MemoryMiB *int64 `tfsdk:"memory_mib"`
}

// PlacementModel is where a role's members are placed.
type PlacementModel struct {
	Strategy *string           `tfsdk:"strategy"`
	SpreadBy *string           `tfsdk:"spread_by"`
	Labels   map[string]string `tfsdk:"labels"`
	Hosts    []string          `tfsdk:"hosts"`
}

// RestartModel is when a role's members are restarted.
type RestartModel struct {
	Condition   *string      `tfsdk:"condition"`
	MaxAttempts *int64       `tfsdk:"max_attempts"`
	Delay       types.String `tfsdk:"delay"`
}

// ExitCodesModel is what exit codes of members mean.
type ExitCodesModel struct {
	Final []string `tfsdk:"final"`
}

// CompletionModel is when a group is done.
type CompletionModel struct {
	When     *string      `tfsdk:"when"`
	Roles    []string     `tfsdk:"roles"`
	Deadline types.String `tfsdk:"deadline"`
	StopRest *bool        `tfsdk:"stop_rest"`
}

func (m Model) identity() resourcekit.Identity {
	return resourcekit.Identity{Cluster: m.Cluster.Name, Name: m.Name}
}

// Defaults of the group's attributes.
const (
	defaultFramework    = "none"
	defaultRestartScope = string(domain.ScopeMember)
	defaultWaitFor      = string(domain.WaitRunning)
)

// expand returns the group as it is specified. Triggers that are unknown are left out: only that they change matters.
func (m Model) expand(diags *diag.Diagnostics) domain.Group {
	group := domain.Group{
		Framework: defaultFramework, Roles: map[string]domain.Role{}, RestartScope: domain.ScopeMember, WaitFor: domain.WaitRunning,
	}
	resourcekit.Expand(&group, m, diags)
	return group
}

// FlattenGroup returns a group as it was read, in the spelling of prior. What drifted shows: what somebody else changed
// has its live value where the group declares it, a number of replicas is that of the members found, and only members
// that are as specified, or of which the change shows, are listed. Members that should not be there are listed, too,
// and the cluster specification is empty while an apply has not come to its end: either makes a difference that the
// next apply takes away. While a policy changes a count, the group is shown as it will be.
func FlattenGroup(group reconcile.Group, prior Model) Model {
	if group.Document.Scaling {
		m := resourcekit.Flatten(group.Document.Spec, prior)
		m.ID = types.StringValue(domain.GroupID(group.Document.Spec.Cluster, group.Document.Spec.Name))
		list := listed(group.Members)
		m.Members, m.Placements, m.ClusterSpec = resourcekit.StringMap(list.addresses), resourcekit.StringMap(list.places), resourcekit.StringMap(group.Layout.ClusterSpec())
		return m
	}
	found := group.Found()
	m := resourcekit.Flatten(found.Spec, prior)
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
	members := listed(found.Members)
	for name, o := range extra {
		members.addresses[name] = o.Address
		if o.Host != "" && !distributed[o.Role] {
			members.places[name] = o.Host
		}
	}
	m.Members, m.Placements = resourcekit.StringMap(members.addresses), resourcekit.StringMap(members.places)
	m.ClusterSpec = resourcekit.StringMap(nil)
	if !group.Document.Applying {
		m.ClusterSpec = resourcekit.StringMap(group.Layout.ClusterSpec())
	}
	return m
}

// memberList is what a resource shows of members, by name. It has no places of those that the engine distributes: they
// change by themselves.
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
