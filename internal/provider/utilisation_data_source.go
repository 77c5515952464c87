package provider

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// utilisationDataSource is trainyard_utilisation.
type utilisationDataSource struct {
	engines []string
	session *session
}

var _ datasource.DataSourceWithConfigure = &utilisationDataSource{}

type utilisationModel struct {
	Cluster clusterRead                 `tfsdk:"cluster"`
	Hosts   map[string]hostUsageModel   `tfsdk:"hosts"`
	GPUs    map[string]gpuUsageModel    `tfsdk:"gpus"`
	Groups  map[string]groupUsageModel  `tfsdk:"groups"`
	Members map[string]memberUsageModel `tfsdk:"members"`
}

// usageModel is what is used of processors and memory.
type usageModel struct {
	CPUsUsed      *float64          `tfsdk:"cpus_used"`
	MemoryUsedMiB *float64          `tfsdk:"memory_used_mib"`
	SampledAt     timetypes.RFC3339 `tfsdk:"sampled_at"`
	Reason        *string           `tfsdk:"reason"`
}

type hostUsageModel struct {
	CPUs       *float64 `tfsdk:"cpus"`
	MemoryMiB  *int64   `tfsdk:"memory_mib"`
	GPUsReason *string  `tfsdk:"gpus_reason"`
	usageModel
}

type gpuUsageModel struct {
	Host               string            `tfsdk:"host"`
	MemoryMiB          *int64            `tfsdk:"memory_mib"`
	MemoryUsedMiB      *int64            `tfsdk:"memory_used_mib"`
	UtilisationPercent *float64          `tfsdk:"utilisation_percent"`
	Members            []string          `tfsdk:"members"`
	SampledAt          timetypes.RFC3339 `tfsdk:"sampled_at"`
	Reason             *string           `tfsdk:"reason"`
}

type memberUsageModel struct {
	Group            string   `tfsdk:"group"`
	Role             string   `tfsdk:"role"`
	Host             *string  `tfsdk:"host"`
	GPUMemoryUsedMiB *float64 `tfsdk:"gpu_memory_used_mib"`
	usageModel
}

type groupUsageModel struct {
	Roles map[string]usageModel `tfsdk:"roles"`
	usageModel
}

func (d *utilisationDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_utilisation"
}

func (d *utilisationDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	number := func(description string) schema.Attribute {
		return schema.Float64Attribute{MarkdownDescription: description, Computed: true}
	}
	whole := func(description string) schema.Attribute {
		return schema.Int64Attribute{MarkdownDescription: description, Computed: true}
	}
	text := func(description string) schema.Attribute {
		return schema.StringAttribute{MarkdownDescription: description, Computed: true}
	}
	sampledAt := schema.StringAttribute{
		MarkdownDescription: "When this was measured, in RFC 3339, UTC; null where it could not be.",
		CustomType:          timetypes.RFC3339Type{},
		Computed:            true,
	}
	const unknown = "Why something is not known; null where all is."
	sample := func(more map[string]schema.Attribute) schema.NestedAttributeObject {
		attributes := map[string]schema.Attribute{
			"cpus_used":       number("Number of processors that are busy, over a fraction of a second; null where it is not known."),
			"memory_used_mib": number("Memory in use, in MiB; null where it is not known."),
			"sampled_at":      sampledAt,
			"reason":          text(unknown),
		}
		maps.Copy(attributes, more)
		return schema.NestedAttributeObject{Attributes: attributes}
	}
	nested := func(description string, of schema.NestedAttributeObject) schema.Attribute {
		return schema.MapNestedAttribute{MarkdownDescription: description, Computed: true, NestedObject: of}
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "What hosts, GPUs, groups and members of a cluster use at the moment. What is not known is null, never 0.",
		Attributes: map[string]schema.Attribute{
			"cluster": clusterReadAttribute(d.engines),
			"hosts": nested("The hosts by name. Hosts that share a machine, as those of `process` do, show the use of the machine.", sample(map[string]schema.Attribute{
				"cpus":        number("Number of processors that the host has; null where it is not known."),
				"memory_mib":  whole("Memory that the host has, in MiB; null where it is not known."),
				"gpus_reason": text("Why it is not known which GPUs the host has; null where it is."),
			})),
			"gpus": nested("The GPUs of the hosts by UUID; `trainyard_gpus` tells more of them.", schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"host":                text("Name of its host. Of hosts that share a machine, it is the first."),
				"memory_mib":          whole("All of its memory, in MiB."),
				"memory_used_mib":     whole("Memory in use, in MiB; null where it is not known."),
				"utilisation_percent": number("How much of the last moment it was working, in percent; null where it is not known."),
				"members": schema.ListAttribute{
					MarkdownDescription: "Names of the members that use it, sorted; null where that is not known.",
					ElementType:         types.StringType,
					Computed:            true,
				},
				"sampled_at": sampledAt,
				"reason":     text(unknown),
			}}),
			"groups": nested("The groups by name, each with all its members that run.", sample(map[string]schema.Attribute{
				"roles": nested("The group's roles by name, each with all its members that run.", sample(nil)),
			})),
			"members": nested("The members of all groups by name, each with all its processes.", sample(map[string]schema.Attribute{
				"group":               text("Name of its group."),
				"role":                text("Name of its role."),
				"host":                text("Name of its host; null where it is on none."),
				"gpu_memory_used_mib": number("Memory in use on the GPUs of its host, in MiB; null where it is not known."),
			})),
		},
	}
}

func (d *utilisationDataSource) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	d.session = sessionOf(req.ProviderData, &resp.Diagnostics)
}

func (d *utilisationDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var model utilisationModel
	if resp.Diagnostics.Append(req.Config.Get(ctx, &model)...); resp.Diagnostics.HasError() {
		return
	}
	key := model.Cluster.key()
	reconciler, err := d.session.open(key)
	if err != nil {
		addError(&resp.Diagnostics, "Unable to read the utilisation", err)
		return
	}
	usage, err := reconciler.Engine.Usage(ctx, time.Second)
	if err != nil {
		addReadError(&resp.Diagnostics, path.Root("cluster"), fmt.Sprintf("utilisation of cluster %q", key.Name), err)
		return
	}
	model.flatten(usage)
	resp.Diagnostics.Append(resp.State.Set(ctx, model)...)
}

func (m *utilisationModel) flatten(usage engine.Usage) {
	m.Hosts = make(map[string]hostUsageModel, len(usage.Hosts))
	for name, u := range usage.Hosts {
		m.Hosts[name] = hostUsageModel{
			CPUs:       keepZero(u.TotalCPUs, nil),
			MemoryMiB:  keepZero(u.TotalMemoryMiB, nil),
			GPUsReason: keepZero(u.GPUsReason, nil),
			usageModel: usageModel{u.CPUs.Last, u.MemoryMiB.Last, moment(&u.SampledAt), keepZero(u.Reason, nil)},
		}
	}
	m.GPUs = make(map[string]gpuUsageModel, len(usage.GPUs))
	for uuid, u := range usage.GPUs {
		m.GPUs[uuid] = gpuUsageModel{
			Host: u.Host, MemoryMiB: keepZero(u.TotalMemoryMiB, nil), MemoryUsedMiB: whole(u.MemoryMiB.Last), UtilisationPercent: u.Utilisation.Last,
			Members: u.Members, SampledAt: moment(&u.SampledAt), Reason: keepZero(u.Reason, nil),
		}
	}
	m.Members = make(map[string]memberUsageModel, len(usage.Members))
	groups := map[string]map[string]engine.MemberUsage{}
	roles := map[string]map[string]map[string]engine.MemberUsage{}
	for name, u := range usage.Members {
		m.Members[name] = memberUsageModel{u.Group, u.Role, keepZero(u.Host, nil), u.GPUMemoryMiB.Last, flattenMemberUsage(u)}
		if groups[u.Group] == nil {
			groups[u.Group], roles[u.Group] = map[string]engine.MemberUsage{}, map[string]map[string]engine.MemberUsage{}
		}
		if roles[u.Group][u.Role] == nil {
			roles[u.Group][u.Role] = map[string]engine.MemberUsage{}
		}
		groups[u.Group][name], roles[u.Group][u.Role][name] = u, u
	}
	m.Groups = make(map[string]groupUsageModel, len(groups))
	for group, members := range groups {
		shown := groupUsageModel{Roles: map[string]usageModel{}, usageModel: flattenMemberUsage(engine.SumUsage(members))}
		for role, members := range roles[group] {
			shown.Roles[role] = flattenMemberUsage(engine.SumUsage(members))
		}
		m.Groups[group] = shown
	}
}

func flattenMemberUsage(u engine.MemberUsage) usageModel {
	return usageModel{u.CPUs.Last, u.MemoryMiB.Last, moment(&u.SampledAt), keepZero(u.Reason, nil)}
}

// whole returns a number as a whole one.
func whole(value *float64) *int64 {
	if value == nil {
		return nil
	}
	return new(int64(*value))
}
