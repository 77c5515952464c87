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

// Model is the model of trainyard_gpus.
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
		MarkdownDescription: "The current state of the GPUs of a cluster's hosts, read from NVIDIA's driver by " +
			"`trainyard-agent`. Unknown values are null, never 0.",
		Attributes: map[string]schema.Attribute{
			"cluster": resourcekit.ClusterReadAttribute(d.Engines),
			"hosts": schema.MapNestedAttribute{
				MarkdownDescription: "Hosts by name. Hosts that share a machine, as on `process`, show the GPUs of " +
					"the machine.",
				Computed: true,
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"reason": schema.StringAttribute{
						MarkdownDescription: "Why the host's GPUs are unknown; null if they are known.",
						Computed:            true,
					},
					"sampled_at": schema.StringAttribute{
						MarkdownDescription: "When the GPUs were sampled, in RFC 3339, UTC.",
						CustomType:          timetypes.RFC3339Type{},
						Computed:            true,
					},
					"gpus": schema.ListNestedAttribute{
						MarkdownDescription: "GPUs in index order; null if they are unknown, and empty if " +
							"there are none.",
						Computed:     true,
						NestedObject: schema.NestedAttributeObject{Attributes: gpuAttributes()},
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
		"uuid": text("UUID of the GPU, such as `GPU-4fa6a2a8-1a3c-4b1e-9f0e-2c7d8e5b6a91`: the " +
			"same in any PCIe slot and after any restart. Use it in `devices` of a `trainyard_gpu_pool`."),
		"index":               whole("Index on the host, from 0. It may change when the host restarts."),
		"model":               text("Model name, such as `NVIDIA A40`."),
		"pci_bus_id":          text("Address on the PCI bus."),
		"memory_mib":          whole("Total memory, in MiB."),
		"memory_used_mib":     whole("Memory in use, in MiB."),
		"memory_free_mib":     whole("Free memory, in MiB."),
		"utilisation_percent": number("Share of the last sample period in which the GPU was busy, in percent."),
		"memory_utilisation_percent": number(
			"Share of the last sample period in which its memory was being read or written, in percent.",
		),
		"temperature_celsius": whole("Temperature, in °C."),
		"power_watts":         number("Power draw, in watts."),
		"power_limit_watts":   number("Power limit, in watts."),
		"ecc_errors": whole(
			"Number of uncorrectable ECC errors since the driver was loaded; null if ECC is disabled.",
		),
		"xid": whole("Number of the last XID error that the driver reported for the GPU since the agent started " +
			"listening, such as 79; null if there was none."),
		"xid_at": schema.StringAttribute{
			MarkdownDescription: "When that error was reported, in RFC 3339, UTC; null if there was none.",
			CustomType:          timetypes.RFC3339Type{},
			Computed:            true,
		},
		"mig": schema.BoolAttribute{
			MarkdownDescription: "Whether the GPU is in MIG mode. Such a GPU can't be in a pool.", Computed: true,
		},
		"numa_node": whole("Nearest NUMA node of the host."),
		"nvlinks": schema.ListAttribute{
			MarkdownDescription: "UUIDs of the GPUs reachable by NVLink.",
			ElementType:         types.StringType,
			Computed:            true,
		},
		"processes": schema.ListNestedAttribute{
			MarkdownDescription: "Processes that use the GPU; null if unknown.",
			Computed:            true,
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"pid":        whole("ID of the process."),
				"memory_mib": whole("GPU memory that it uses, in MiB."),
				"command":    text("Name of the program."),
				"member": text(
					"Name of the member of this cluster that it belongs to; null for any other process.",
				),
			}},
		},
		"trouble": text("Why the GPU can't be used, such as `fallen off the bus (XID 79)`; null if it can."),
		"unknown": text("What could not be read from the GPU, and why; null if everything could."),
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
		UUID: resourcekit.OrNull(g.UUID), Index: int64(g.Index), Model: resourcekit.OrNull(g.Model),
		PCIBusID:  resourcekit.OrNull(g.PCIBusID),
		MemoryMiB: resourcekit.OrNull(g.MemoryMiB), MemoryUsedMiB: g.MemoryUsedMiB, MemoryFreeMiB: g.MemoryFreeMiB,
		UtilisationPercent:       types.Float64PointerValue(g.Utilisation),
		MemoryUtilisationPercent: types.Float64PointerValue(g.MemoryUtilisation),
		TemperatureCelsius:       g.TemperatureC, PowerWatts: types.Float64PointerValue(g.PowerW),
		PowerLimitWatts: types.Float64PointerValue(g.PowerLimitW),
		ECCErrors:       g.ECCErrors, XID: resourcekit.Integer[int64](g.XID), XIDAt: resourcekit.Moment(g.XIDAt),
		MIG: g.MIG, NUMANode: resourcekit.Integer[int64](g.NUMANode), NVLinks: append([]string{}, g.Links...),
		Trouble: resourcekit.OrNull(g.Trouble), Unknown: resourcekit.OrNull(g.Unknown),
	}
	if g.Processes != nil {
		m.Processes = []gpuProcessModel{}
	}
	for _, p := range g.Processes {
		m.Processes = append(m.Processes,
			gpuProcessModel{int64(p.PID), p.MemoryMiB, resourcekit.OrNull(p.Command), resourcekit.OrNull(p.Member)})
	}
	return m
}

// NewDataSource returns trainyard_gpus for clusters of these engines.
func NewDataSource(engines []string) datasource.DataSource {
	return &gpusDataSource{resourcekit.NewDataSource("gpus", engines)}
}
