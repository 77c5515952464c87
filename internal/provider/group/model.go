package group

import (
	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// Model is the model of trainyard_group.
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

// TemplateModel is what the members of a group or of a role run.
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

// UpdateModel is how a role's members are updated.
type UpdateModel struct {
	Parallelism *int64       `tfsdk:"parallelism"`
	Delay       types.String `tfsdk:"delay"`
	OnFailure   *string      `tfsdk:"on_failure"`
}

// ResourcesModel is what a member requests.
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

// RoleGPUsModel is the GPUs of a role's members.
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

// ExitCodesModel is the meaning of members' exit codes.
type ExitCodesModel struct {
	Final []string `tfsdk:"final"`
}

// CompletionModel is when a group has completed.
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

// expand returns the group as specified. Unknown triggers are left out, as only a change of them matters.
func (m Model) expand(diags *diag.Diagnostics) domain.Group {
	group := domain.Group{
		Framework: defaultFramework, Roles: map[string]domain.Role{}, RestartScope: domain.ScopeMember,
		WaitFor: domain.WaitRunning,
	}
	resourcekit.Expand(&group, m, diags)
	return group.Compact()
}

// flatten returns the model of a specification, in the spelling of prior.
func flatten(spec domain.Group, prior Model) Model {
	m := resourcekit.Flatten(spec, prior)
	m.TemplateModel = m.Spelled(prior.TemplateModel, domain.Template{})
	for name, role := range m.Roles {
		role.TemplateModel = role.Spelled(prior.Roles[name].TemplateModel, spec.Template)
		m.Roles[name] = role
	}
	return m
}

// Spelled returns m with the empty lists of prior, where these mean the same as none over defaults: see
// [domain.Template.Compact].
func (m TemplateModel) Spelled(prior TemplateModel, defaults domain.Template) TemplateModel {
	if m.Args == nil && len(prior.Args) == 0 && (len(defaults.Args) == 0 || m.Command != nil) {
		m.Args = prior.Args
	}
	if m.Command == nil && len(prior.Command) == 0 && len(defaults.Command) == 0 {
		m.Command = prior.Command
	}
	if m.Mounts == nil && len(prior.Mounts) == 0 && len(defaults.Mounts) == 0 {
		m.Mounts = prior.Mounts
	}
	return m
}

// FlattenGroup returns a group as read, in the spelling of prior. Drift shows: declared attributes that were changed
// from outside have their live values, replicas are the number of members found, and only members that are as specified
// or whose change is visible are listed. Members that should not exist are listed as well, and the cluster
// specification is empty while an apply is unfinished, so that the next plan shows a change. While a policy scales a
// role, the group is shown as it will be.
func FlattenGroup(group reconcile.Group, prior Model) Model {
	if group.Document.Scaling {
		m := flatten(group.Document.Spec, prior)
		m.ID = types.StringValue(domain.GroupID(group.Document.Spec.Cluster, group.Document.Spec.Name))
		list := listed(group.Members)
		m.Members, m.Placements, m.ClusterSpec = resourcekit.StringMap(list.addresses),
			resourcekit.StringMap(list.places), resourcekit.StringMap(group.Layout.ClusterSpec())
		return m
	}
	found := group.Found()
	m := flatten(found.Spec, prior)
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

// memberList is what a resource shows of members, by name. It has no places of members that the engine schedules, as
// these change by themselves.
type memberList struct{ addresses, places map[string]string }

func listed(members []domain.Member) memberList {
	list := memberList{make(map[string]string, len(members)), make(map[string]string, len(members))}
	for _, m := range members {
		list.addresses[m.Name] = m.Address
		if !m.Shared() { // else the engine chooses it
			list.places[m.Name] = placeOf(m)
		}
	}
	return list
}

// placeOf describes where a member is, with its GPUs.
func placeOf(m domain.Member) string { return domain.Assignment{Host: m.Host, GPUs: m.GPUs}.Place() }
