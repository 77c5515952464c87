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
		Cluster:      m.Cluster.Name.ValueString(),
		Name:         m.Name.ValueString(),
		Framework:    stringOr(m.Framework, defaultFramework),
		Template:     m.templateModel.expand(diags),
		Roles:        make(map[string]domain.Role, len(m.Roles)),
		RestartScope: domain.RestartScope(stringOr(m.RestartScope, defaultRestartScope)),
		WaitFor:      domain.WaitFor(stringOr(m.WaitFor, defaultWaitFor)),
	}
	for name, role := range m.Roles {
		group.Roles[name] = role.expand(diags)
	}
	if c := m.Completion; c != nil {
		group.Completion = domain.Completion{
			When:     domain.When(value(c.When)),
			Roles:    compact(c.Roles),
			Deadline: duration(c.Deadline, diags),
			StopRest: c.StopRest,
		}
	}
	for name, v := range m.Triggers.Elements() {
		if text, ok := v.(types.String); ok && !text.IsUnknown() {
			if group.Triggers == nil {
				group.Triggers = map[string]string{}
			}
			group.Triggers[name] = text.ValueString()
		}
	}
	return group
}

func stringOr(s types.String, fallback string) string {
	if s.ValueString() == "" {
		return fallback
	}
	return s.ValueString()
}

func (m templateModel) expand(diags *diag.Diagnostics) domain.Template {
	template := domain.Template{
		Image:      value(m.Image),
		Command:    compact(m.Command),
		Args:       compact(m.Args),
		Env:        compactMap(m.Env),
		WorkingDir: value(m.WorkingDir),
		Container:  m.Container.expand(diags),
	}
	for _, mount := range m.Mounts {
		template.Mounts = append(template.Mounts, domain.Mount{
			Type: domain.MountType(value(mount.Type)), Source: value(mount.Source), Target: mount.Target, ReadOnly: value(mount.ReadOnly), SizeMiB: value(mount.SizeMiB),
		})
	}
	return template
}

func (m roleModel) expand(diags *diag.Diagnostics) domain.Role {
	role := domain.Role{
		Template:    m.templateModel.expand(diags),
		Replicas:    integer[int](m.Replicas),
		OnScale:     domain.OnScale(value(m.OnScale)),
		Port:        integer[int](m.Port),
		GracePeriod: duration(m.GracePeriod, diags),
	}
	if r := m.Resources; r != nil {
		role.Resources = domain.ResourceRequirements{CPUs: r.CPUs.ValueFloat64(), MemoryMiB: value(r.MemoryMiB)}
		limits := value(r.Limits)
		role.Resources.Limits = domain.Resources{CPUs: limits.CPUs.ValueFloat64(), MemoryMiB: value(limits.MemoryMiB)}
	}
	if g := m.GPUs; g != nil {
		role.GPUs = &domain.GPURequest{Pool: g.Pool, Count: integer[int](g.Count), MemoryMiB: value(g.MemoryMiB)}
	}
	if p := m.Placement; p != nil {
		role.Placement = domain.Placement{Strategy: domain.Strategy(value(p.Strategy)), Labels: compactMap(p.Labels), Hosts: compact(p.Hosts)}
	}
	if r := m.Restart; r != nil {
		role.Restart = domain.Restart{
			Condition:   domain.Condition(value(r.Condition)),
			MaxAttempts: integer[int](r.MaxAttempts),
			Delay:       duration(r.Delay, diags),
		}
	}
	if u := m.Update; u != nil {
		role.Update = domain.Update{
			Parallelism: int(value(u.Parallelism)), Delay: duration(u.Delay, diags), OnFailure: domain.OnFailure(value(u.OnFailure)),
		}
	}
	if m.ExitCodes != nil {
		role.ExitCodes = &domain.ExitCodeRule{Final: m.ExitCodes.Final}
	}
	return role
}

// flatten returns a group as it is stored, in the spelling of prior; id, timeouts, members and what else is computed
// are prior's.
func flatten(spec domain.Group, prior groupModel) groupModel {
	m := prior
	m.Cluster = clusterReference{Name: types.StringValue(spec.Cluster), Engine: types.StringValue(prior.Cluster.key().Engine), Endpoint: prior.Cluster.Endpoint}
	m.Name = types.StringValue(spec.Name)
	m.Framework = types.StringValue(spec.Framework)
	m.templateModel = flattenTemplate(spec.Template, prior.templateModel)
	m.Roles = make(map[string]roleModel, len(spec.Roles))
	for name, role := range spec.Roles {
		m.Roles[name] = flattenRole(role, prior.Roles[name])
	}
	completion := value(prior.Completion)
	m.Completion = keepObject(completionModel{
		When:     keepZero(string(spec.Completion.When), completion.When),
		Roles:    keepList(spec.Completion.Roles, completion.Roles),
		Deadline: keepDuration(spec.Completion.Deadline, completion.Deadline),
		StopRest: spec.Completion.StopRest,
	}, prior.Completion)
	m.RestartScope = types.StringValue(string(spec.RestartScope))
	m.WaitFor = types.StringValue(string(spec.WaitFor))
	switch {
	case len(spec.Triggers) > 0:
		m.Triggers = stringMap(spec.Triggers)
	case prior.Triggers.IsNull() || len(prior.Triggers.Elements()) > 0:
		m.Triggers = types.MapNull(types.StringType)
	}
	return m
}

func flattenTemplate(t domain.Template, prior templateModel) templateModel {
	m := templateModel{
		Image:      keepZero(t.Image, prior.Image),
		Command:    keepList(t.Command, prior.Command),
		Args:       keepList(t.Args, prior.Args),
		Env:        keepMap(t.Env, prior.Env),
		WorkingDir: keepZero(t.WorkingDir, prior.WorkingDir),
		Container:  flattenContainer(t.Container, prior.Container),
	}
	if prior.Mounts != nil && len(prior.Mounts) == 0 {
		m.Mounts = prior.Mounts
	}
	for i, mount := range t.Mounts {
		var before mountModel
		if i < len(prior.Mounts) {
			before = prior.Mounts[i]
		}
		m.Mounts = append(m.Mounts, mountModel{
			Type: keepZero(string(mount.Type), before.Type), Source: keepZero(mount.Source, before.Source), Target: mount.Target,
			ReadOnly: keepZero(mount.ReadOnly, before.ReadOnly), SizeMiB: keepZero(mount.SizeMiB, before.SizeMiB),
		})
	}
	return m
}

func flattenRole(r domain.Role, prior roleModel) roleModel {
	resources, placement, restart, update := value(prior.Resources), value(prior.Placement), value(prior.Restart), value(prior.Update)
	limits := value(resources.Limits)
	m := roleModel{
		Replicas:      integer[int64](r.Replicas),
		OnScale:       keepZero(string(r.OnScale), prior.OnScale),
		Port:          integer[int64](r.Port),
		templateModel: flattenTemplate(r.Template, prior.templateModel),
		Resources: keepObject(resourcesModel{
			CPUs:      keepZeroNumber(r.Resources.CPUs, resources.CPUs),
			MemoryMiB: keepZero(r.Resources.MemoryMiB, resources.MemoryMiB),
			Limits: keepObject(limitsModel{
				CPUs:      keepZeroNumber(r.Resources.Limits.CPUs, limits.CPUs),
				MemoryMiB: keepZero(r.Resources.Limits.MemoryMiB, limits.MemoryMiB),
			}, resources.Limits),
		}, prior.Resources),
		Placement: keepObject(placementModel{
			Strategy: keepZero(string(r.Placement.Strategy), placement.Strategy),
			Labels:   keepMap(r.Placement.Labels, placement.Labels),
			Hosts:    keepList(r.Placement.Hosts, placement.Hosts),
		}, prior.Placement),
		Restart: keepObject(restartModel{
			Condition:   keepZero(string(r.Restart.Condition), restart.Condition),
			MaxAttempts: integer[int64](r.Restart.MaxAttempts),
			Delay:       keepDuration(r.Restart.Delay, restart.Delay),
		}, prior.Restart),
		GracePeriod: keepDuration(r.GracePeriod, prior.GracePeriod),
		Update: keepObject(updateModel{
			Parallelism: keepZero(int64(r.Update.Parallelism), update.Parallelism),
			Delay:       keepDuration(r.Update.Delay, update.Delay),
			OnFailure:   keepZero(string(r.Update.OnFailure), update.OnFailure),
		}, prior.Update),
	}
	if g := r.GPUs; g != nil {
		before := value(prior.GPUs)
		m.GPUs = &roleGPUsModel{Pool: g.Pool, Count: integer[int64](g.Count), MemoryMiB: keepZero(g.MemoryMiB, before.MemoryMiB)}
	}
	if r.ExitCodes != nil {
		m.ExitCodes = &exitCodesModel{Final: append([]string{}, r.ExitCodes.Final...)}
	}
	return m
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
