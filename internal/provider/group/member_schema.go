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

// What is particular to the members of a role.
const (
	roleGPUs = "GPUs that each member gets of a GPU pool, all of them on one host, and keeps through restarts and updates. It finds their UUIDs in `CUDA_VISIBLE_DEVICES` and `NVIDIA_VISIBLE_DEVICES`. " +
		"Members of the group's other roles see none. Interchangeable members (workers of `spark` and `ray`) that have GPUs are placed one by one, as all others are."
	rolePlacement  = "On which hosts the members are. Members that are placed stay where they are as long as that is allowed."
	roleStrategies = "`spread` (over the hosts evenly), `pack` (onto as few hosts as possible) or `one_per_host` (no two members of the role on one host)."
)

// ResourcesAttribute says what each member requests of its host, by what one is called.
func ResourcesAttribute(member string) schema.Attribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: "What each " + member + " requests of its host, and, unless `limits` say otherwise, may use at most. What is left out is neither reserved nor limited. Where the machine does not let `process` enforce limits, the plan warns.",
		Optional:            true,
		Attributes: map[string]schema.Attribute{
			"cpus": schema.Float64Attribute{
				MarkdownDescription: "Number of processors; fractions such as `0.5` are allowed, down to `0.01`. 0 is as if left out.",
				Optional:            true,
			},
			"memory_mib": schema.Int64Attribute{
				MarkdownDescription: "Memory in MiB; a " + member + " that uses more is killed. 0 is as if left out.",
				Optional:            true,
			},
			"limits": schema.SingleNestedAttribute{
				MarkdownDescription: "What each " + member + " may use at most, where that is more than it requests. Defaults to what it requests.",
				Optional:            true,
				Attributes: map[string]schema.Attribute{
					"cpus": schema.Float64Attribute{
						MarkdownDescription: "Number of processors, as many as are requested or more. 0 is as if left out.",
						Optional:            true,
					},
					"memory_mib": schema.Int64Attribute{
						MarkdownDescription: "Memory in MiB, as much as is requested or more; a " + member + " that uses more is killed. 0 is as if left out.",
						Optional:            true,
					},
				},
			},
		},
	}
}

// GPUsAttribute says which GPUs each member gets, by what one is called.
func GPUsAttribute(member, description string) schema.Attribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: description,
		Optional:            true,
		Attributes: map[string]schema.Attribute{
			"pool": schema.StringAttribute{
				MarkdownDescription: "Name of the GPU pool of the cluster: `trainyard_gpu_pool.v100.name`.",
				Required:            true,
			},
			"count": schema.Int64Attribute{
				MarkdownDescription: "Number of GPUs of each " + member + ". Of several, those are chosen that are closest to one another: joined by NVLink, or else near one memory node; and of hosts that are the same to `placement`, that one where they are. 1 or more; for none, `gpus` itself is left out: `gpus = var.gpu ? { pool = … } : null`. Defaults to 1.",
				Optional:            true,
			},
			"memory_mib": schema.Int64Attribute{
				MarkdownDescription: "Memory of each GPU that a " + member + " needs, in MiB. Of a pool with slots it gets as many as hold that, one where it is left out; of other pools, GPUs that have so much. The " + member + " finds it in `TRAINYARD_GPU_MEMORY_MIB`.",
				Optional:            true,
			},
		},
	}
}

// PlacementAttribute says on which hosts members are, and lists the strategies that make a difference to them.
func PlacementAttribute(description, strategies string) schema.Attribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: description,
		Optional:            true,
		Attributes: map[string]schema.Attribute{
			"strategy": schema.StringAttribute{
				MarkdownDescription: strategies + " Defaults to `spread`. Where a host is as good as another, a member of several GPUs goes to that one where they are closest to one another.",
				Optional:            true,
			},
			"spread_by": schema.StringAttribute{
				MarkdownDescription: "Label of hosts, such as `rack` or `zone`: members are spread evenly over its values first, and by `strategy` within each. Hosts without it count as one more value. Where a value has no room left, members go to the others. Members that are placed don't move for it. Omit to spread by no label.",
				Optional:            true,
				Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
			},
			"labels": schema.MapAttribute{
				MarkdownDescription: "Labels that a host must have, with just these values. Defaults to none: any host will do.",
				ElementType:         types.StringType,
				Optional:            true,
				Validators:          []validator.Map{mapvalidator.NoNullValues()},
			},
			"hosts": schema.ListAttribute{
				MarkdownDescription: "Names of the only hosts that will do. Defaults to none: any host will do.",
				ElementType:         types.StringType,
				Optional:            true,
				Validators:          []validator.List{listvalidator.NoNullValues()},
			},
		},
	}
}

// ExitCodesAttribute says what exit codes mean.
func ExitCodesAttribute(meaning string) schema.Attribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: meaning + " A member that was killed by a signal has the exit code 128 + the number of the signal: 137 for `kill -9`, or out of memory.",
		Optional:            true,
		Attributes: map[string]schema.Attribute{
			"final": schema.ListAttribute{
				MarkdownDescription: "Exit codes from 1 to 255, such as `\"3\"`, and ranges, such as `\"1-127\"`, after which there is no restart. All others are retried. Defaults to `[\"126-127\"]`: the command can't be executed, or isn't there.",
				ElementType:         types.StringType,
				Required:            true,
				Validators:          []validator.List{listvalidator.NoNullValues()},
			},
		},
	}
}

// GracePeriodAttribute says how long a member has to end, by what one is called.
func GracePeriodAttribute(member string) schema.Attribute {
	return schema.StringAttribute{
		MarkdownDescription: "Time that a " + member + " has to end after it got the signal to (SIGTERM, or the container's `stop_signal`), before it is killed (SIGKILL), as a duration such as `1m`. Defaults to `10s`.",
		Validators:          []validator.String{resourcekit.IsDuration()},
		PlanModifiers:       []planmodifier.String{resourcekit.SameDuration()},
		Optional:            true,
	}
}
