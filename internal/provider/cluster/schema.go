package cluster

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

//go:embed resource.md
var resourceDescription string

// Schema is the schema of trainyard_cluster.
func Schema(ctx context.Context, engines []string) schema.Schema {
	return schema.Schema{
		MarkdownDescription: strings.TrimSpace(resourceDescription),
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{
				MarkdownDescription: "The cluster's name.",
				Computed:            true,
				PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			},
			"name": schema.StringAttribute{
				MarkdownDescription: "Name of the cluster, a DNS label: lower-case letters, digits and hyphens, " +
					"starting with a letter, at most 63 characters, or 42 for `swarm`. " +
					"Unique per engine and provider configuration. Forces replacement.",
				Required:      true,
				PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"engine": schema.StringAttribute{
				MarkdownDescription: "What runs the members: `process` (processes on this machine), `swarm` " +
					"(services of a Docker Swarm) or `systemd` (systemd units, or containers for members with an " +
					"image, on hosts reached over SSH). Defaults to `process`. " +
					"Forces replacement.",
				Optional:      true,
				Computed:      true,
				Default:       stringdefault.StaticString(resourcekit.DefaultEngine),
				Validators:    []validator.String{stringvalidator.OneOf(engines...)},
				PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"endpoint": schema.StringAttribute{
				MarkdownDescription: "Address at which the cluster is reached. For `swarm`, a manager's: " +
					"`unix:///var/run/docker.sock`, `tcp://host:2376` (TLS) or `ssh://user@host`. For `systemd`, a " +
					"host's: `ssh://user@host[:port]`. Not for `process`. Defaults to the `address` of the first " +
					"manager in `hosts` that has one; without any, `swarm` uses what the `docker` command uses. A " +
					"change only affects how the cluster is reached.",
				Optional:   true,
				Computed:   true,
				Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
			},
			"hosts": schema.MapNestedAttribute{
				MarkdownDescription: "Hosts by name: lower-case host names, see above. For `swarm`, hosts that are " +
					"not yet part of the Swarm join or form it; defaults to all nodes of the existing Swarm. For " +
					"`systemd`, required. For `process`, defaults to one host, `local`: this machine with all its " +
					"capacity. Members on a removed host move when their group is next applied.",
				Optional:   true,
				Computed:   true,
				Validators: []validator.Map{mapvalidator.SizeAtLeast(1), mapvalidator.NoNullValues()},
				NestedObject: schema.NestedAttributeObject{
					Attributes: hostAttributes(),
				},
			},
			"network": schema.SingleNestedAttribute{
				MarkdownDescription: "Overlay network that the members share, for `swarm` only. Omitted attributes " +
					"are chosen when the network is created, and not managed from then on. A change recreates the " +
					"network, which fails while groups or other services use it.",
				Optional: true,
				Computed: true,
				Attributes: map[string]schema.Attribute{
					"subnet": schema.StringAttribute{
						MarkdownDescription: "IPv4 range of the network in CIDR notation, such as `10.20.0.0/20`. " +
							"Each member takes one address, the controller one, and each host two. Defaults to a " +
							"free range with room for 4,000 addresses.",
						Optional:   true,
						Computed:   true,
						Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
					},
					"encrypted": schema.BoolAttribute{
						MarkdownDescription: "Whether traffic between members on different hosts is encrypted. " +
							"Defaults to `false`.",
						Optional: true,
						Computed: true,
					},
					"attachable": schema.BoolAttribute{
						MarkdownDescription: "Whether standalone containers may join the network, as with `docker " +
							"run --network`. Defaults to `false`.",
						Optional: true,
						Computed: true,
					},
				},
			},
			"agent": schema.SingleNestedAttribute{
				MarkdownDescription: "The agent on each host, which measures the host, its members and its GPUs.",
				Optional:            true,
				Attributes: map[string]schema.Attribute{
					"enabled": schema.BoolAttribute{
						MarkdownDescription: "Whether the agent runs. Without it, `trainyard_utilisation` and " +
							"`trainyard_gpus` have almost no data, and GPU pools are not available. " +
							"Defaults to `true`.",
						Optional: true,
					},
					"metrics_port": schema.Int64Attribute{
						MarkdownDescription: fmt.Sprintf("Port on which each host's agent serves Prometheus metrics, "+
							"for `systemd` and `process`: %d to %d, such as `9465`. The controller uses the next port "+
							"on its host. Anyone who can reach these ports can read the metrics. Defaults to none: no "+
							"metrics are served. Not allowed for `swarm`, where metrics are always served, on the "+
							"cluster's network only. See the guide \"Monitoring\".",
							domain.LowestMetricsPort, domain.HighestMetricsPort),
						Optional:   true,
						Validators: []validator.Int64{int64validator.AtLeast(1)},
					},
					"image": schema.StringAttribute{
						MarkdownDescription: "Trainyard image for the agents, for `swarm` only. Each host pulls it. " +
							"A tag is pinned to its digest when an apply starts the agents. Defaults to the " +
							"controller's image.",
						Optional:   true,
						Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
					},
				},
			},
			"timeouts": resourcekit.TimeoutsAttribute(ctx, defaultTimeout, "", ""),
		},
	}
}

func hostAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"address": schema.StringAttribute{
			MarkdownDescription: "For `process`, an address of this machine, without a port, at which other members " +
				"reach those on this host. Defaults to `127.0.0.1`. For `swarm`, the address of its Docker Engine, " +
				"such as `ssh://ops@gpu1`: required for a host to join or leave the Swarm, otherwise optional. For " +
				"`systemd`, the address of its SSH server: `ssh://[user@]host[:port]`, as root or as a user with " +
				"passwordless sudo.",
			Optional:   true,
			Computed:   true,
			Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
		},
		"labels": schema.MapAttribute{
			MarkdownDescription: "Labels of the host, by name. A role's `placement` can require them, or spread " +
				"members by one. Defaults to none. For `swarm`, they are node labels; node labels not listed here " +
				"are left alone.",
			ElementType: types.StringType,
			Optional:    true,
			Validators:  []validator.Map{mapvalidator.NoNullValues()},
		},
		"role": schema.StringAttribute{
			MarkdownDescription: "`manager` or `worker`. For `swarm`, hosts are promoted and demoted, as long as the " +
				"Swarm keeps its quorum. If omitted, the role is not managed, and a host joins as a worker node. " +
				"For `systemd`, exactly one host is the `manager`: it stores the cluster's documents and runs its " +
				"controller. Not for `process`.",
			Optional:   true,
			Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
		},
		"availability": schema.StringAttribute{
			MarkdownDescription: "Whether the host accepts members, for `swarm` only: `active`, `pause` (it keeps " +
				"the members it has) or `drain` (they move to other hosts). Not managed if omitted.",
			Optional:   true,
			Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
		},
		"advertise_address": schema.StringAttribute{
			MarkdownDescription: "Address at which the other hosts reach this one, optionally with a port. For " +
				"`swarm`, an IP address or a network interface, which takes effect when the host joins. If omitted, " +
				"Docker chooses it, which works if the host has only one address. " +
				"For `systemd`, a name or an IP address, for members and for the controller, which logs in there on " +
				"this port. If omitted, they use the host in `address`.",
			Optional:   true,
			Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
		},
		"socket": schema.StringAttribute{
			MarkdownDescription: "Path of the Docker Engine's socket on the host, for the controller to mount; for " +
				"`swarm` only. Defaults to the path in an `ssh://` address; " +
				"otherwise, over SSH, to the one that the host's `docker` command uses; otherwise to " +
				"`/var/run/docker.sock`. Set it for rootless Docker behind `tcp://`, such as " +
				"`/run/user/1000/docker.sock`.",
			Optional: true,
		},
		"capacity": schema.SingleNestedAttribute{
			MarkdownDescription: "Total that the members on this host may request. Omitted attributes default to " +
				"the machine's.",
			Optional: true,
			Computed: true,
			Attributes: map[string]schema.Attribute{
				"cpus": schema.Float64Attribute{
					MarkdownDescription: "Number of CPUs, above 0; fractions are allowed. Defaults to the machine's.",
					Optional:            true,
					Computed:            true,
				},
				"memory_mib": schema.Int64Attribute{
					MarkdownDescription: "Memory in MiB, 1 or more. Defaults to the machine's; differences of up to " +
						"2 %, as between two kernel versions, are ignored.",
					Optional: true,
					Computed: true,
				},
			},
		},
	}
}
