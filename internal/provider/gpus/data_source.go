package gpus

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

// gpusDataSource is trainyard_gpus.
type gpusDataSource struct{ resourcekit.DataSource }

var _ datasource.DataSourceWithConfigure = &gpusDataSource{}

// Model is trainyard_gpus as Terraform keeps it.
type Model struct {
	Cluster resourcekit.ClusterRead  `tfsdk:"cluster"`
	Hosts   map[string]hostGPUsModel `tfsdk:"hosts"`
}

type hostGPUsModel struct {
	Reason    *string           `tfsdk:"reason"`
	SampledAt timetypes.RFC3339 `tfsdk:"sampled_at"`
	GPUs      []gpuModel        `tfsdk:"gpus"`
}

type gpuModel struct {
	UUID                     *string           `tfsdk:"uuid"`
	Index                    int64             `tfsdk:"index"`
	Model                    *string           `tfsdk:"model"`
	PCIBusID                 *string           `tfsdk:"pci_bus_id"`
	MemoryMiB                *int64            `tfsdk:"memory_mib"`
	MemoryUsedMiB            *int64            `tfsdk:"memory_used_mib"`
	MemoryFreeMiB            *int64            `tfsdk:"memory_free_mib"`
	UtilisationPercent       types.Float64     `tfsdk:"utilisation_percent"`
	MemoryUtilisationPercent types.Float64     `tfsdk:"memory_utilisation_percent"`
	TemperatureCelsius       *int64            `tfsdk:"temperature_celsius"`
	PowerWatts               types.Float64     `tfsdk:"power_watts"`
	PowerLimitWatts          types.Float64     `tfsdk:"power_limit_watts"`
	ECCErrors                *int64            `tfsdk:"ecc_errors"`
	XID                      *int64            `tfsdk:"xid"`
	XIDAt                    timetypes.RFC3339 `tfsdk:"xid_at"`
	MIG                      *bool             `tfsdk:"mig"`
	NUMANode                 *int64            `tfsdk:"numa_node"`
	NVLinks                  []string          `tfsdk:"nvlinks"`
	Processes                []gpuProcessModel `tfsdk:"processes"`
	Trouble                  *string           `tfsdk:"trouble"`
	Unknown                  *string           `tfsdk:"unknown"`
}

type gpuProcessModel struct {
	PID       int64   `tfsdk:"pid"`
	MemoryMiB *int64  `tfsdk:"memory_mib"`
	Command   *string `tfsdk:"command"`
	Member    *string `tfsdk:"member"`
}

func (d *gpusDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "The GPUs of a cluster's hosts as they are at the moment, read from NVIDIA's driver by `trainyard-agent`. What is not known is null, never 0.",
		Attributes: map[string]schema.Attribute{
			"cluster": resourcekit.ClusterReadAttribute(d.Engines),
			"hosts": schema.MapNestedAttribute{
				MarkdownDescription: "The hosts by name. Hosts that share a machine, as those of `process` do, show the GPUs of the machine.",
				Computed:            true,
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"reason": schema.StringAttribute{
						MarkdownDescription: "Why it is not known which GPUs there are; null where it is.",
						Computed:            true,
					},
					"sampled_at": schema.StringAttribute{
						MarkdownDescription: "When they were looked at, in RFC 3339, UTC.",
						CustomType:          timetypes.RFC3339Type{},
						Computed:            true,
					},
					"gpus": schema.ListNestedAttribute{
						MarkdownDescription: "The GPUs in the order of their indexes; null where it is not known which there are, and empty where there are none.",
						Computed:            true,
						NestedObject:        schema.NestedAttributeObject{Attributes: gpuAttributes()},
					},
				}},
			},
		},
	}
}

func gpuAttributes() map[string]schema.Attribute {
	text := func(description string) schema.Attribute {
		return schema.StringAttribute{MarkdownDescription: description, Computed: true}
	}
	whole := func(description string) schema.Attribute {
		return schema.Int64Attribute{MarkdownDescription: description, Computed: true}
	}
	number := func(description string) schema.Attribute {
		return schema.Float64Attribute{MarkdownDescription: description, Computed: true}
	}
	return map[string]schema.Attribute{
		"uuid":                       text("The GPU's UUID, such as `GPU-4fa6a2a8-1a3c-4b1e-9f0e-2c7d8e5b6a91`: the same in any slot and after any restart. `devices` of a `trainyard_gpu_pool` take it."),
		"index":                      whole("Its number on the host, from 0, which may be another after a restart of the host."),
		"model":                      text("Name of its model, such as `NVIDIA A40`."),
		"pci_bus_id":                 text("Its address on the PCI bus."),
		"memory_mib":                 whole("All of its memory, in MiB."),
		"memory_used_mib":            whole("Memory in use, in MiB."),
		"memory_free_mib":            whole("Memory that is free, in MiB."),
		"utilisation_percent":        number("How much of the last moment it was working, in percent."),
		"memory_utilisation_percent": number("How much of the last moment its memory was read or written, in percent."),
		"temperature_celsius":        whole("Its temperature, in °C."),
		"power_watts":                number("Power that it draws, in watts."),
		"power_limit_watts":          number("Power that it may draw at most, in watts."),
		"ecc_errors":                 whole("Number of errors of its memory that could not be corrected, since the driver was loaded; null where ECC is off."),
		"xid":                        whole("Number of the last error (XID) that the driver reported of it since the agent listens, such as 79; null where there was none."),
		"xid_at": schema.StringAttribute{
			MarkdownDescription: "When it was reported, in RFC 3339, UTC; null where there was none.",
			CustomType:          timetypes.RFC3339Type{},
			Computed:            true,
		},
		"mig":       schema.BoolAttribute{MarkdownDescription: "Whether it is divided by MIG. Such a GPU can't be in a pool.", Computed: true},
		"numa_node": whole("Memory node of the host that it is nearest to."),
		"nvlinks": schema.ListAttribute{
			MarkdownDescription: "UUIDs of the GPUs that it reaches by NVLink.",
			ElementType:         types.StringType,
			Computed:            true,
		},
		"processes": schema.ListNestedAttribute{
			MarkdownDescription: "The processes that use it; null where nobody can tell.",
			Computed:            true,
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"pid":        whole("ID of the process."),
				"memory_mib": whole("Memory of the GPU that it uses, in MiB."),
				"command":    text("Name of its program."),
				"member":     text("Name of the member of this cluster that it belongs to; null for a process of anybody else."),
			}},
		},
		"trouble": text("Why it can't be used, such as `fallen off the bus (XID 79)`; null where it can."),
		"unknown": text("What could not be read of it, and why; null where all could."),
	}
}

func (d *gpusDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	defer resourcekit.AddDestroyRegardless(&resp.Diagnostics)
	var model Model
	if resp.Diagnostics.Append(req.Config.Get(ctx, &model)...); resp.Diagnostics.HasError() {
		return
	}
	key := model.Cluster.Key()
	reconciler, err := d.Session.Open(key)
	if err != nil {
		resourcekit.AddError(&resp.Diagnostics, "Unable to read the GPUs", err)
		return
	}
	found, err := reconciler.Engine.GPUs(ctx)
	if err != nil {
		resourcekit.AddReadError(&resp.Diagnostics, path.Root("cluster"), fmt.Sprintf("cluster %q", key.Name), err)
		return
	}
	model.Hosts = make(map[string]hostGPUsModel, len(found))
	for host, gpus := range found {
		model.Hosts[host] = flattenHostGPUs(gpus)
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, model)...)
}

func flattenHostGPUs(found domain.HostGPUs) hostGPUsModel {
	m := hostGPUsModel{Reason: resourcekit.OrNull(found.Unknown), SampledAt: resourcekit.Moment(&found.SampledAt)}
	if found.Unknown == "" {
		m.GPUs = []gpuModel{}
	}
	for _, g := range found.GPUs {
		m.GPUs = append(m.GPUs, flattenGPU(g))
	}
	return m
}

func flattenGPU(g domain.GPU) gpuModel {
	m := gpuModel{
		UUID: resourcekit.OrNull(g.UUID), Index: int64(g.Index), Model: resourcekit.OrNull(g.Model), PCIBusID: resourcekit.OrNull(g.PCIBusID),
		MemoryMiB: resourcekit.OrNull(g.MemoryMiB), MemoryUsedMiB: g.MemoryUsedMiB, MemoryFreeMiB: g.MemoryFreeMiB,
		UtilisationPercent: types.Float64PointerValue(g.Utilisation), MemoryUtilisationPercent: types.Float64PointerValue(g.MemoryUtilisation),
		TemperatureCelsius: g.TemperatureC, PowerWatts: types.Float64PointerValue(g.PowerW), PowerLimitWatts: types.Float64PointerValue(g.PowerLimitW),
		ECCErrors: g.ECCErrors, XID: resourcekit.Integer[int64](g.XID), XIDAt: resourcekit.Moment(g.XIDAt),
		MIG: g.MIG, NUMANode: resourcekit.Integer[int64](g.NUMANode), NVLinks: append([]string{}, g.Links...),
		Trouble: resourcekit.OrNull(g.Trouble), Unknown: resourcekit.OrNull(g.Unknown),
	}
	if g.Processes != nil {
		m.Processes = []gpuProcessModel{}
	}
	for _, p := range g.Processes {
		m.Processes = append(m.Processes, gpuProcessModel{int64(p.PID), p.MemoryMiB, resourcekit.OrNull(p.Command), resourcekit.OrNull(p.Member)})
	}
	return m
}

// NewDataSource returns trainyard_gpus for clusters of these engines.
func NewDataSource(engines []string) datasource.DataSource {
	return &gpusDataSource{resourcekit.NewDataSource("gpus", engines)}
}
