package group

import (
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

// Descriptions of settings of a role's members.
const (
	roleGPUs = "GPUs that each member gets from a GPU pool, all on one host. A member keeps them through restarts " +
		"and updates, and finds their UUIDs in `CUDA_VISIBLE_DEVICES` and `NVIDIA_VISIBLE_DEVICES`. " +
		"Members of roles without `gpus` see no GPUs. Interchangeable members (workers of `spark` and `ray`) that " +
		"have GPUs are placed one by one, like all other members."
	rolePlacement = "Which hosts the members run on. Members already placed stay where they are, as long as their " +
		"host is still allowed."
	roleStrategies = "`spread` (evenly over the hosts), `pack` (onto as few hosts as possible) or `one_per_host` (no " +
		"two members of the role on one host)."
)

// ResourcesAttribute is what each member requests from its host; member is what the description calls one.
func ResourcesAttribute(member string) schema.Attribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: "What each " + member + " requests from its host and, unless `limits` says otherwise, " +
			"may use at most. Anything omitted is neither reserved nor limited. The plan warns if the machine does " +
			"not let `process` enforce limits.",
		Optional: true,
		Attributes: map[string]schema.Attribute{
			"cpus": schema.Float64Attribute{
				MarkdownDescription: "Number of CPUs; fractions such as `0.5` are allowed, down to `0.01`. 0 is the " +
					"same as omitting it.",
				Optional: true,
			},
			"memory_mib": schema.Int64Attribute{
				MarkdownDescription: "Memory in MiB. A " + member +
					" that uses more is killed. 0 is the same as omitting it.",
				Optional: true,
			},
			"limits": schema.SingleNestedAttribute{
				MarkdownDescription: "What each " + member +
					" may use at most, if more than it requests. Defaults to what it requests.",
				Optional: true,
				Attributes: map[string]schema.Attribute{
					"cpus": schema.Float64Attribute{
						MarkdownDescription: "Number of CPUs, at least the number requested. 0 is the same as " +
							"omitting it.",
						Optional: true,
					},
					"memory_mib": schema.Int64Attribute{
						MarkdownDescription: "Memory in MiB, at least the amount requested. A " + member +
							" that uses more is killed. 0 is the same as omitting it.",
						Optional: true,
					},
				},
			},
		},
	}
}

// GPUsAttribute is the GPUs that each member gets; member is what the description calls one.
func GPUsAttribute(member, description string) schema.Attribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: description,
		Optional:            true,
		Attributes: map[string]schema.Attribute{
			"pool": schema.StringAttribute{
				MarkdownDescription: "Name of a GPU pool of the cluster: `trainyard_gpu_pool.v100.name`.",
				Required:            true,
			},
			"count": schema.Int64Attribute{
				MarkdownDescription: "Number of GPUs per " + member + ", 1 or more. If more than one, the GPUs " +
					"closest to each other are chosen: connected by NVLink, or else near the same NUMA node. Among " +
					"hosts that `placement` ranks equally, the one with the closest GPUs is chosen. For no GPUs, " +
					"omit `gpus` itself: `gpus = var.gpu ? { pool = … } : null`. Defaults to 1.",
				Optional: true,
			},
			"memory_mib": schema.Int64Attribute{
				MarkdownDescription: "Memory that a " + member + " needs on each GPU, in MiB. From a pool with " +
					"slots, it gets as many slots as hold that much, or one slot if this is omitted; from other " +
					"pools, GPUs that have that much. The " + member +
					" finds the value in `TRAINYARD_GPU_MEMORY_MIB`.",
				Optional: true,
			},
		},
	}
}

// PlacementAttribute is the hosts that members run on; strategies lists those that apply to them.
func PlacementAttribute(description, strategies string) schema.Attribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: description,
		Optional:            true,
		Attributes: map[string]schema.Attribute{
			"strategy": schema.StringAttribute{
				MarkdownDescription: strategies + " Defaults to `spread`. Among hosts that rank equally, a member " +
					"with several GPUs goes to the one where they are closest to each other.",
				Optional: true,
			},
			"spread_by": schema.StringAttribute{
				MarkdownDescription: "Host label, such as `rack` or `zone`: members are spread evenly over its " +
					"values first, then by `strategy` within each. Hosts without the label count as one more value. " +
					"If a value has no room left, members go to the others. Members already placed don't move for " +
					"it. Defaults to none.",
				Optional:   true,
				Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
			},
			"labels": schema.MapAttribute{
				MarkdownDescription: "Labels that a host must have, with exactly these values. Defaults to none: any " +
					"host is allowed.",
				ElementType: types.StringType,
				Optional:    true,
				Validators:  []validator.Map{mapvalidator.NoNullValues()},
			},
			"hosts": schema.ListAttribute{
				MarkdownDescription: "Names of the allowed hosts. Defaults to none: any host is allowed.",
				ElementType:         types.StringType,
				Optional:            true,
				Validators:          []validator.List{listvalidator.NoNullValues()},
			},
		},
	}
}

// ExitCodesAttribute is the meaning of exit codes.
func ExitCodesAttribute(meaning string) schema.Attribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: meaning +
			" A member killed by a signal has exit code 128 + the signal's number: 137 for `kill -9` or out of memory.",
		Optional: true,
		Attributes: map[string]schema.Attribute{
			"final": schema.ListAttribute{
				MarkdownDescription: "Exit codes from 1 to 255, such as `\"3\"`, and ranges, such as `\"1-127\"`, " +
					"that are not retried. All others are. Without `exit_codes`, `[\"126-127\"]`: the command can't " +
					"be executed or doesn't exist.",
				ElementType: types.StringType,
				Required:    true,
				Validators:  []validator.List{listvalidator.NoNullValues()},
			},
		},
	}
}

// GracePeriodAttribute is how long a member has to end; member is what the description calls one.
func GracePeriodAttribute(member string) schema.Attribute {
	return schema.StringAttribute{
		MarkdownDescription: "Time that a " + member + " has to end after the stop signal (SIGTERM, or the " +
			"container's `stop_signal`) before it is killed (SIGKILL): a duration such as `1m`. Defaults to `10s`.",
		Validators:    []validator.String{resourcekit.IsDuration()},
		PlanModifiers: []planmodifier.String{resourcekit.SameDuration()},
		Optional:      true,
	}
}
