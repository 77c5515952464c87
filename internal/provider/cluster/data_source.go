package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

// clusterDataSource is trainyard_cluster.
type clusterDataSource struct{ resourcekit.DataSource }

var _ datasource.DataSourceWithConfigure = &clusterDataSource{}

type dataModel struct {
	ID       types.String         `tfsdk:"id"`
	Name     types.String         `tfsdk:"name"`
	Engine   types.String         `tfsdk:"engine"`
	Endpoint types.String         `tfsdk:"endpoint"`
	Hosts    map[string]HostModel `tfsdk:"hosts"`
	Network  *NetworkModel        `tfsdk:"network"`
	Agent    *agentModel          `tfsdk:"agent"`
	Groups   []string             `tfsdk:"groups"`
	Sweeps   []string             `tfsdk:"sweeps"`

	Controller *controllerModel              `tfsdk:"controller"`
	Agents     map[string]agentResidentModel `tfsdk:"agents"`
}

// controllerModel is the state of a cluster's controller, and agentResidentModel that of a host's agent.
type controllerModel struct {
	State string  `tfsdk:"state"`
	Host  *string `tfsdk:"host"`
	Error *string `tfsdk:"error"`

	Metrics *string `tfsdk:"metrics_address"`
}

type agentResidentModel struct {
	State string  `tfsdk:"state"`
	Error *string `tfsdk:"error"`

	Metrics *string `tfsdk:"metrics_address"`
}

func (d *clusterDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "A cluster, with its hosts and the names of its groups and sweeps. Refer to it like the " +
			"resource: `cluster = data.trainyard_cluster.lab`.",
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{
				MarkdownDescription: "The cluster's name.",
				Computed:            true,
			},
			"name": schema.StringAttribute{
				MarkdownDescription: resourcekit.ClusterNameDescription,
				Required:            true,
			},
			"engine": schema.StringAttribute{
				MarkdownDescription: resourcekit.ClusterEngineDescription,
				Optional:            true,
				Computed:            true,
				Validators:          []validator.String{stringvalidator.OneOf(d.Engines...)},
			},
			"endpoint": schema.StringAttribute{
				MarkdownDescription: resourcekit.ClusterEndpointDescription,
				Optional:            true,
				Computed:            true,
				Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
			},
			"hosts": schema.MapNestedAttribute{
				MarkdownDescription: "Hosts by name, in their actual state.",
				Computed:            true,
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"address": schema.StringAttribute{
						MarkdownDescription: "For `process`, the address at which other members reach the members on " +
							"this host, without a port. For `swarm`, the address of its Docker Engine; null if not " +
							"declared. For `systemd`, the address of its SSH server.",
						Computed: true,
					},
					"role": schema.StringAttribute{
						MarkdownDescription: "`manager` or `worker`; null if not managed.",
						Computed:            true,
					},
					"availability": schema.StringAttribute{
						MarkdownDescription: "`active`, `pause` or `drain`; null if not managed.",
						Computed:            true,
					},
					"advertise_address": schema.StringAttribute{
						MarkdownDescription: "Address at which the other hosts reach this one; null if not declared.",
						Computed:            true,
					},
					"socket": schema.StringAttribute{
						MarkdownDescription: "Path of its Docker Engine's socket; null if not declared.",
						Computed:            true,
					},
					"labels": schema.MapAttribute{
						MarkdownDescription: "Labels of the host, by name.",
						ElementType:         types.StringType,
						Computed:            true,
					},
					"capacity": schema.SingleNestedAttribute{
						MarkdownDescription: "Total that the members on this host may request.",
						Computed:            true,
						Attributes: map[string]schema.Attribute{
							"cpus": schema.Float64Attribute{
								MarkdownDescription: "Number of CPUs.",
								Computed:            true,
							},
							"memory_mib": schema.Int64Attribute{
								MarkdownDescription: "Memory in MiB.",
								Computed:            true,
							},
						},
					},
				}},
			},
			"network": schema.SingleNestedAttribute{
				MarkdownDescription: "Network that the members share; null if the engine creates none.",
				Computed:            true,
				Attributes: map[string]schema.Attribute{
					"subnet": schema.StringAttribute{
						MarkdownDescription: "Address range of the network in CIDR notation.",
						Computed:            true,
					},
					"encrypted": schema.BoolAttribute{
						MarkdownDescription: "Whether traffic between members on different hosts is encrypted.",
						Computed:            true,
					},
					"attachable": schema.BoolAttribute{
						MarkdownDescription: "Whether standalone containers may join the network.",
						Computed:            true,
					},
				},
			},
			"controller": schema.SingleNestedAttribute{
				MarkdownDescription: "The cluster's controller, which restarts members, detects completion, starts " +
					"the runs of sweeps and applies autoscaling policies.",
				Computed: true,
				Attributes: map[string]schema.Attribute{
					"state": schema.StringAttribute{
						MarkdownDescription: residentStateDescription,
						Computed:            true,
					},
					"host": schema.StringAttribute{
						MarkdownDescription: "Host on which it runs, or last failed; null if unknown, and " +
							"on `process`.",
						Computed: true,
					},
					"error": schema.StringAttribute{
						MarkdownDescription: residentErrorDescription,
						Computed:            true,
					},
					"metrics_address": schema.StringAttribute{
						MarkdownDescription: residentMetricsDescription,
						Computed:            true,
					},
				},
			},
			"agent": schema.SingleNestedAttribute{
				MarkdownDescription: "Settings of the agent on each host.",
				Computed:            true,
				Attributes: map[string]schema.Attribute{
					"enabled": schema.BoolAttribute{
						MarkdownDescription: "Whether the agent runs.",
						Computed:            true,
					},
					"metrics_port": schema.Int64Attribute{
						MarkdownDescription: "Port on which each host's agent serves Prometheus metrics, for " +
							"`systemd` and `process`. The controller uses the next port on its host. Null if no " +
							"metrics are served.",
						Computed: true,
					},
					"image": schema.StringAttribute{
						MarkdownDescription: "Trainyard image for the agents, for `swarm`; null if it is the " +
							"controller's.",
						Computed: true,
					},
				},
			},
			"agents": schema.MapNestedAttribute{
				MarkdownDescription: "Agents, which measure utilisation and GPUs, by host; null if " +
					"`agent.enabled` is false.",
				Computed: true,
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"state": schema.StringAttribute{
						MarkdownDescription: residentStateDescription,
						Computed:            true,
					},
					"error": schema.StringAttribute{
						MarkdownDescription: residentErrorDescription,
						Computed:            true,
					},
					"metrics_address": schema.StringAttribute{
						MarkdownDescription: residentMetricsDescription,
						Computed:            true,
					},
				}},
			},
			"groups": schema.ListAttribute{
				MarkdownDescription: "Names of the groups in the cluster, sorted.",
				ElementType:         types.StringType,
				Computed:            true,
			},
			"sweeps": schema.ListAttribute{
				MarkdownDescription: "Names of the sweeps in the cluster, sorted.",
				ElementType:         types.StringType,
				Computed:            true,
			},
		},
	}
}

const (
	residentStateDescription = "`running`, `starting`, `failing` (being retried, or no host can run it) or " +
		"`absent` (not scheduled)."
	residentErrorDescription   = "Why it isn't running, and what to do; null if it is running or starting."
	residentMetricsDescription = "Address at which it serves Prometheus metrics, under `/metrics`, such as " +
		"`10.0.0.3:9465`; null without `agent.metrics_port`."
)

func (d *clusterDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	defer resourcekit.AddDestroyRegardless(&resp.Diagnostics)
	var model dataModel
	if resp.Diagnostics.Append(req.Config.Get(ctx, &model)...); resp.Diagnostics.HasError() {
		return
	}
	key := resourcekit.KeyOf(model.Name, model.Engine, model.Endpoint)
	reconciler, err := d.Session.Open(key)
	if err != nil {
		resourcekit.AddError(&resp.Diagnostics, "Unable to read the cluster", err)
		return
	}
	cluster, err := survey(ctx, reconciler.Engine)
	if err != nil {
		resourcekit.AddReadError(&resp.Diagnostics, path.Root("name"), fmt.Sprintf("cluster %q", key.Name), err)
		return
	}
	d.Session.Know(cluster)
	groups, err := engine.List[domain.GroupDocument](ctx, reconciler.Engine)
	if err != nil {
		resourcekit.AddReadError(&resp.Diagnostics, path.Root("name"),
			fmt.Sprintf("the groups of cluster %q", key.Name), err)
		return
	}
	sweeps, err := engine.List[domain.SweepDocument](ctx, reconciler.Engine)
	if err != nil {
		resourcekit.AddReadError(&resp.Diagnostics, path.Root("name"),
			fmt.Sprintf("the sweeps of cluster %q", key.Name), err)
		return
	}
	residents, err := reconciler.Engine.Residents(ctx)
	if err != nil {
		resourcekit.AddReadError(&resp.Diagnostics, path.Root("name"),
			fmt.Sprintf("the controller of cluster %q", key.Name), err)
		return
	}
	model.Controller = &controllerModel{
		string(residents.Controller.State), resourcekit.OrNull(residents.Controller.Host),
		residentError(residents.Controller), resourcekit.OrNull(residents.Controller.Metrics),
	}
	if residents.Agents != nil {
		model.Agents = map[string]agentResidentModel{}
	}
	for name, agent := range residents.Agents {
		model.Agents[name] = agentResidentModel{
			string(agent.State), residentError(agent), resourcekit.OrNull(agent.Metrics),
		}
	}
	model.ID, model.Engine = types.StringValue(key.Name), types.StringValue(key.Engine)
	if model.Endpoint.IsNull() {
		model.Endpoint = resourcekit.TextOrNull(cluster.Endpoint)
	}
	model.Hosts = resourcekit.Flatten(cluster, Model{}).Hosts
	model.Network = flattenNetwork(cluster.Network, types.StringNull())
	model.Agent = &agentModel{
		Enabled: new(!cluster.Agent.Disabled), Image: resourcekit.OrNull(cluster.Agent.Image),
		MetricsPort: resourcekit.OrNull(int64(cluster.Agent.MetricsPort)),
	}
	model.Groups = append([]string{}, slices.Sorted(maps.Keys(groups))...)
	model.Sweeps = append([]string{}, slices.Sorted(maps.Keys(sweeps))...)
	resp.Diagnostics.Append(resp.State.Set(ctx, model)...)
}

// residentError returns why a controller or agent is not running; nil if it runs or is starting.
func residentError(r domain.Resident) *string {
	if r.Error == "" {
		return nil
	}
	return new(r.Why())
}

// NewDataSource returns trainyard_cluster for clusters of these engines.
func NewDataSource(engines []string) datasource.DataSource {
	return &clusterDataSource{resourcekit.NewDataSource("cluster", engines)}
}
