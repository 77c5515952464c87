package cluster

import (
	"context"
	"fmt"

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

// Schema is the schema of trainyard_cluster.
func Schema(ctx context.Context, engines []string) schema.Schema {
	return schema.Schema{
		MarkdownDescription: "A named set of hosts that one engine runs groups on.\n\n" +
			"Its specification is stored with the cluster itself, and a small controller runs there that acts between two applies: " +
			"it starts the runs of sweeps, ends groups that have completed, restarts groups as a whole, and on a Swarm restarts members and places those anew whose hosts are lost. A cluster is destroyed only when no group or sweep is left in it; " +
			"then those hosts leave a Swarm that joined it by this resource, and bare hosts are cleaned of everything that Trainyard has put there.",
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{
				MarkdownDescription: "The cluster's name.",
				Computed:            true,
				PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			},
			"name": schema.StringAttribute{
				MarkdownDescription: "Name of the cluster, a DNS label: lower-case letters, digits and hyphens, a letter first, at most 63 characters. " +
					"Forces replacement.",
				Required:      true,
				PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"engine": schema.StringAttribute{
				MarkdownDescription: "What runs the members: `process`, as processes of this machine; `swarm`, as services of a Docker Swarm; or `systemd`, as units of systemd, and as containers where they have an image, on hosts that are reached over SSH. Defaults to `process`. " +
					"Forces replacement.",
				Optional:      true,
				Computed:      true,
				Default:       stringdefault.StaticString(resourcekit.DefaultEngine),
				Validators:    []validator.String{stringvalidator.OneOf(engines...)},
				PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"endpoint": schema.StringAttribute{
				MarkdownDescription: "Where a manager of the Swarm is reached: `unix:///var/run/docker.sock`, `tcp://host:2376` (TLS) or `ssh://user@host`; credentials are in the provider's `ssh` and `docker`. " +
					"Should it not answer, the other managers are tried at their `address`. Defaults to the address of the first manager among the `hosts`, by name, that has one; else it stays null, " +
					"and the Docker Engine is the one that the `docker` command would use (`DOCKER_HOST`, the current context, the local socket). Another endpoint is no other cluster. " +
					"For `systemd`, the address of a host of the cluster, `ssh://user@host[:port]`; defaults to that of the manager. Not for `process`.",
				Optional:   true,
				Computed:   true,
				Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
			},
			"hosts": schema.MapNestedAttribute{
				MarkdownDescription: "The hosts by name, each a host name in lower case. For `swarm`, the name is the host's own host name, or, with an `address`, any other; hosts that are not part of the Swarm yet join it, over their `address`, " +
					"and where no Swarm is there at all the hosts form one. " +
					"For `systemd`, any names: each host needs an `address`, and one of them the role `manager`; a host that is taken out is cleaned of everything that Trainyard has put there. Left out for the other engines, the hosts are all nodes of a Swarm that is there, or one host, `local`, which is this machine with all its capacity, for `process`. " +
					"More can be declared for `process`: they share the machine, each with a capacity of its own, and serve to try out placement. " +
					"Members on a host that is taken away move when their group is applied next, which is in the same apply for groups that refer to this resource.",
				Optional:   true,
				Computed:   true,
				Validators: []validator.Map{mapvalidator.SizeAtLeast(1), mapvalidator.NoNullValues()},
				NestedObject: schema.NestedAttributeObject{
					Attributes: hostAttributes(),
				},
			},
			"network": schema.SingleNestedAttribute{
				MarkdownDescription: "The overlay network that the members share, for `swarm` only. What is left out is chosen when the network is made, and is not managed from then on.",
				Optional:            true,
				Computed:            true,
				Attributes: map[string]schema.Attribute{
					"subnet": schema.StringAttribute{
						MarkdownDescription: "Range of its addresses in CIDR notation, such as `10.20.0.0/20`: a member takes one, the controller one, and each host two. Defaults to a free range with room for 4,000 of them.",
						Optional:            true,
						Computed:            true,
						Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
					},
					"encrypted": schema.BoolAttribute{
						MarkdownDescription: "Whether what members send from host to host is encrypted. Defaults to `false`.",
						Optional:            true,
						Computed:            true,
					},
					"attachable": schema.BoolAttribute{
						MarkdownDescription: "Whether plain containers may join the network, such as `docker run --network`. Defaults to `false`.",
						Optional:            true,
						Computed:            true,
					},
				},
			},
			"agent": schema.SingleNestedAttribute{
				MarkdownDescription: "The agent, which measures each host: what it and its members use, and its GPUs.",
				Optional:            true,
				Attributes: map[string]schema.Attribute{
					"enabled": schema.BoolAttribute{
						MarkdownDescription: "Whether it runs. Without it `trainyard_utilisation` and `trainyard_gpus` know next to nothing, and there are no GPU pools. Defaults to `true`.",
						Optional:            true,
					},
					"metrics_port": schema.Int64Attribute{
						MarkdownDescription: fmt.Sprintf("Port at which the agent of each host answers Prometheus, see the guide \"Monitoring\", for `systemd` and `process`: %d to %d, such as `9465`. The controller answers on its host at the next one. "+
							"They listen at the address by which the hosts reach each other (`advertise_address`, else that in `address`), and whoever reaches it may read. Defaults to null: nothing listens. "+
							"For `swarm`, where they answer on the cluster's network, it is refused.", domain.LowestMetricsPort, domain.HighestMetricsPort),
						Optional:   true,
						Validators: []validator.Int64{int64validator.AtLeast(1)},
					},
					"image": schema.StringAttribute{
						MarkdownDescription: "Image of Trainyard that agents run from, which all hosts pull, for `swarm` only. A tag is pinned to its digest when an apply starts them. Defaults to the image of the controller.",
						Optional:            true,
						Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
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
			MarkdownDescription: "For `process`, where members on this host are reached by others: an address of this machine, without a port; defaults to `127.0.0.1`. " +
				"For `swarm`, where its Docker Engine is reached, such as `ssh://ops@gpu1`: it is needed for a host to join or leave the Swarm, and optional for one that is part of it anyway. " +
				"For `systemd`, where its SSH server is reached: `ssh://[user@]host[:port]`, as root or as a user with sudo and without a password.",
			Optional:   true,
			Computed:   true,
			Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
		},
		"labels": schema.MapAttribute{
			MarkdownDescription: "Labels of the host, by name. The `placement` of a role can ask for them, or spread members by one. Defaults to none. For `swarm` they are labels of the node, of which those not named here are left alone.",
			ElementType:         types.StringType,
			Optional:            true,
			Validators:          []validator.Map{mapvalidator.NoNullValues()},
		},
		"role": schema.StringAttribute{
			MarkdownDescription: "`manager` or `worker`. For `swarm`, hosts are promoted and demoted, as long as the Swarm keeps its quorum; left out, it is not managed, and a host that joins does so as a worker. " +
				"For `systemd`, exactly one host is the `manager`: it keeps the cluster's documents and runs its controller. Not for `process`.",
			Optional:   true,
			Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
		},
		"availability": schema.StringAttribute{
			MarkdownDescription: "Whether the host takes members, for `swarm` only: `active`, `pause` (it keeps those that it has) or `drain` (they move to other hosts). Left out, it is not managed.",
			Optional:            true,
			Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
		},
		"advertise_address": schema.StringAttribute{
			MarkdownDescription: "Where the other hosts reach this one, if need be with a port. For `swarm`, an IP address or a network interface; it counts when the host joins, and left out, Docker chooses it, which it can where the host has one address. " +
				"For `systemd`, a name or an IP address, for members and for the controller, which logs in there at this port; left out, they use the host of its `address`.",
			Optional:   true,
			Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
		},
		"socket": schema.StringAttribute{
			MarkdownDescription: "Path of the Docker Engine's socket on the host, for the controller to mount; for `swarm` only. Defaults to the path in an `ssh://` address, " +
				"else, over SSH, the one that the host's `docker` command uses, else `/var/run/docker.sock`. For rootless Docker behind `tcp://`: `/run/user/1000/docker.sock`.",
			Optional: true,
		},
		"capacity": schema.SingleNestedAttribute{
			MarkdownDescription: "What the members on this host may request in all. What is left out is that of the machine.",
			Optional:            true,
			Computed:            true,
			Attributes: map[string]schema.Attribute{
				"cpus": schema.Float64Attribute{
					MarkdownDescription: "Number of processors, above 0; fractions are allowed. Defaults to those of the machine.",
					Optional:            true,
					Computed:            true,
				},
				"memory_mib": schema.Int64Attribute{
					MarkdownDescription: "Memory in MiB, 1 or more. Defaults to that of the machine; differences of up to 2 %, as between two versions of a kernel, are no change.",
					Optional:            true,
					Computed:            true,
				},
			},
		},
	}
}
