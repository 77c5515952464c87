package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
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
	Members map[string]memberUsageModel `tfsdk:"members"`
}

type hostUsageModel struct {
	CPUs      *float64 `tfsdk:"cpus"`
	MemoryMiB *int64   `tfsdk:"memory_mib"`
	memberUsageModel
}

type memberUsageModel struct {
	CPUsUsed      *float64          `tfsdk:"cpus_used"`
	MemoryUsedMiB *float64          `tfsdk:"memory_used_mib"`
	SampledAt     timetypes.RFC3339 `tfsdk:"sampled_at"`
	Reason        *string           `tfsdk:"reason"`
}

func (d *utilisationDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_utilisation"
}

func (d *utilisationDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	number := func(description string) schema.Attribute {
		return schema.Float64Attribute{MarkdownDescription: description, Computed: true}
	}
	sample := func() map[string]schema.Attribute {
		return map[string]schema.Attribute{
			"cpus_used":       number("Number of processors that are busy, over a fraction of a second; null where it is not known."),
			"memory_used_mib": number("Memory in use, in MiB; null where it is not known."),
			"sampled_at": schema.StringAttribute{
				MarkdownDescription: "When this was measured, in RFC 3339, UTC; null where it could not be.",
				CustomType:          timetypes.RFC3339Type{},
				Computed:            true,
			},
			"reason": schema.StringAttribute{
				MarkdownDescription: "Why something is not known; null where all is.",
				Computed:            true,
			},
		}
	}
	hosts := sample()
	hosts["cpus"] = number("Number of processors that the host has; null where it is not known.")
	hosts["memory_mib"] = schema.Int64Attribute{MarkdownDescription: "Memory that the host has, in MiB; null where it is not known.", Computed: true}
	resp.Schema = schema.Schema{
		MarkdownDescription: "What the hosts and members of a cluster use at the moment. What is not known is null, never 0.",
		Attributes: map[string]schema.Attribute{
			"cluster": clusterReadAttribute(d.engines),
			"hosts": schema.MapNestedAttribute{
				MarkdownDescription: "The hosts by name. Hosts that share a machine, as those of `process` do, show the use of the machine.",
				Computed:            true,
				NestedObject:        schema.NestedAttributeObject{Attributes: hosts},
			},
			"members": schema.MapNestedAttribute{
				MarkdownDescription: "The members of all groups by name, each with all its processes.",
				Computed:            true,
				NestedObject:        schema.NestedAttributeObject{Attributes: sample()},
			},
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
	usage, err := reconciler.Engine.Usage(ctx)
	if err != nil {
		addReadError(&resp.Diagnostics, path.Root("cluster"), fmt.Sprintf("utilisation of cluster %q", key.Name), err)
		return
	}
	model.Hosts = make(map[string]hostUsageModel, len(usage.Hosts))
	for name, u := range usage.Hosts {
		model.Hosts[name] = hostUsageModel{
			CPUs:             keepZero(u.TotalCPUs, nil),
			MemoryMiB:        keepZero(u.TotalMemoryMiB, nil),
			memberUsageModel: memberUsageModel{u.CPUs, u.MemoryMiB, moment(&u.SampledAt), keepZero(u.Reason, nil)},
		}
	}
	model.Members = make(map[string]memberUsageModel, len(usage.Members))
	for name, u := range usage.Members {
		model.Members[name] = memberUsageModel{u.CPUs, u.MemoryMiB, moment(&u.SampledAt), keepZero(u.Reason, nil)}
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, model)...)
}
