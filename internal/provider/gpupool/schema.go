package gpupool

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

const resourceDescription = "GPUs of a cluster that its groups and sweeps may use, and how they are shared. A role asks for some of them by `gpus = { pool = trainyard_gpu_pool.v100.name }`; members of the group's other roles see none.\n\n" +
	"The devices are named by their UUIDs (`devices`), or chosen by what they are (`select`): by what the hosts have when the pool is created or changed. " +
	"What was chosen stays chosen, so that a plan without change asks no host for its GPUs. A device can be in one pool only.\n\n" +
	"| `sharing` | a device serves | a role's `gpus` ask for |\n" +
	"|---|---|---|\n" +
	"| `exclusive` | one member | `count` devices |\n" +
	"| `slots` | as many members as its memory, less `reserve_percent`, has slots of `memory_mib_per_slot` | the slots that hold `memory_mib`, one by default, on each of `count` devices |\n\n" +
	"An A40 of 46,068 MiB has 37 slots of 1,199 MiB. No hardware keeps a member within its slots: the program has to, see the guide \"GPU pools\".\n\n" +
	"The cluster's controller looks at the devices every few seconds. One that is gone, or in trouble, stays in the pool, and is shown as `unhealthy`: " +
	"no member gets it, and an apply moves those that have it to others of the pool. Once it works again it is given out as before.\n\n" +
	"The GPUs are found by `trainyard-agent`, which is released with the provider. Where a host's are not known, a pool that needs them is an error that says why."

// Schema is the schema of trainyard_gpu_pool.
func Schema(ctx context.Context, engines []string) schema.Schema {
	choice := func(description string, fallback string) schema.Attribute {
		return schema.StringAttribute{
			MarkdownDescription: description + " Defaults to `" + fallback + "`.",
			Optional:            true,
			Computed:            true,
			Default:             stringdefault.StaticString(fallback),
		}
	}
	return schema.Schema{
		MarkdownDescription: resourceDescription,
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{
				MarkdownDescription: "`<cluster>/<pool>`.",
				Computed:            true,
				PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			},
			"cluster": resourcekit.ClusterReferenceAttribute(engines),
			"name": schema.StringAttribute{
				MarkdownDescription: "Name of the pool within its cluster, a DNS label: lower-case letters, digits and hyphens, a letter first. Forces replacement, which fails as long as a group or sweep uses the pool.",
				Required:            true,
				PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"devices": schema.MapAttribute{
				MarkdownDescription: "UUIDs of the devices by the names of their hosts, as `nvidia-smi -L` and the data source `trainyard_gpus` list them; members get them in this order. Where `select` is given, those that it chose.",
				ElementType:         types.ListType{ElemType: types.StringType},
				Optional:            true,
				Computed:            true,
				Validators:          []validator.Map{mapvalidator.NoNullValues(), mapvalidator.ValueListsAre(listvalidator.NoNullValues())},
			},
			"select": schema.SingleNestedAttribute{
				MarkdownDescription: "What devices are to be chosen, instead of `devices`: all that are as said here. Devices that are divided by MIG, or in trouble, are left out.",
				Optional:            true,
				Attributes:          selectorAttributes(),
			},
			"sharing": choice("Whether a device serves one member (`exclusive`) or several (`slots`), see above.", string(domain.Exclusive)),
			"memory_mib_per_slot": schema.Int64Attribute{
				MarkdownDescription: "Size of a slot in MiB, for `slots`, where it is needed: what a member uses at its peak.",
				Optional:            true,
			},
			"reserve_percent": schema.Float64Attribute{
				MarkdownDescription: "How much of each device's memory no slot is made of, in percent, for `slots`: what the driver and CUDA itself need. Defaults to 3.",
				Optional:            true,
			},
			"strategy":           choice("How members are distributed over the devices of a host: `spread` (over all evenly) or `pack` (onto as few as possible).", string(domain.Spread)),
			"on_foreign_process": choice("What happens to a device that a process uses which is no member's: `avoid` (it is not given to a member as long as that is so), `warn` (it is, with a warning, where no other is left) or `ignore`.", string(domain.ForeignAvoid)),
			"slots": schema.Int64Attribute{
				MarkdownDescription: "Number of slots of all devices, which have one each where they are exclusive.",
				Computed:            true,
			},
			"device_slots": schema.MapAttribute{
				MarkdownDescription: "Number of slots of each device, by its UUID.",
				ElementType:         types.Int64Type,
				Computed:            true,
			},
			"unhealthy": schema.MapAttribute{
				MarkdownDescription: "What is wrong with devices of the pool, by UUID, with their hosts; empty where all can be used. " +
					"As long as it is not, each plan shows a change of it: what is declared is not what there is. An apply looks again.",
				ElementType: types.StringType,
				Computed:    true,
			},
			"timeouts": resourcekit.TimeoutsAttribute(ctx, defaultTimeout, "It covers the wait for the agents of hosts that have just become part of the cluster.", ""),
		},
	}
}

func selectorAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"model": schema.StringAttribute{
			MarkdownDescription: "Pattern of the whole name of their model, in which `*` stands for any characters and `?` for one, such as `Tesla V100*`.",
			Optional:            true,
		},
		"memory_mib": schema.Int64Attribute{
			MarkdownDescription: "The least memory that each has, in MiB.",
			Optional:            true,
		},
		"hosts": schema.ListAttribute{
			MarkdownDescription: "Names of the only hosts that will do. Defaults to none: any host will do.",
			ElementType:         types.StringType,
			Optional:            true,
			Validators:          []validator.List{listvalidator.NoNullValues()},
		},
		"labels": schema.MapAttribute{
			MarkdownDescription: "Labels that a host must have, with just these values. Defaults to none: any host will do.",
			ElementType:         types.StringType,
			Optional:            true,
			Validators:          []validator.Map{mapvalidator.NoNullValues()},
		},
		"max_per_host": schema.Int64Attribute{
			MarkdownDescription: "How many devices of each host are chosen at most, by their indexes. 0 is as if left out: all.",
			Optional:            true,
		},
	}
}
