package gpupool

import (
	"context"
	_ "embed"
	"strings"

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

//go:embed resource.md
var resourceDescription string

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
		MarkdownDescription: strings.TrimSpace(resourceDescription),
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{
				MarkdownDescription: "`<cluster>/<pool>`.",
				Computed:            true,
				PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			},
			"cluster": resourcekit.ClusterReferenceAttribute(engines),
			"name": schema.StringAttribute{
				MarkdownDescription: "Name of the pool within its cluster, a DNS label: lower-case letters, digits " +
					"and hyphens, starting with a letter, at most 63 characters. Forces replacement, which fails as " +
					"long as a group or sweep uses the pool.",
				Required:      true,
				PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"devices": schema.MapAttribute{
				MarkdownDescription: "UUIDs of the devices by host name, as listed by `nvidia-smi -L` and the data " +
					"source `trainyard_gpus`. They are allocated in this order. Set this or `select`; with `select`, " +
					"these are the devices that it chose.",
				ElementType: types.ListType{ElemType: types.StringType},
				Optional:    true,
				Computed:    true,
				Validators: []validator.Map{
					mapvalidator.NoNullValues(), mapvalidator.ValueListsAre(listvalidator.NoNullValues()),
				},
			},
			"select": schema.SingleNestedAttribute{
				MarkdownDescription: "Selects devices by their properties, instead of `devices`: all that match. " +
					"Devices in MIG mode or with a problem are left out.",
				Optional:   true,
				Attributes: selectorAttributes(),
			},
			"sharing": choice("Whether a device serves one member (`exclusive`) or several (`slots`), see above.",
				string(domain.Exclusive)),
			"memory_mib_per_slot": schema.Int64Attribute{
				MarkdownDescription: "Size of a slot in MiB, 1 or more: the peak usage of a member. Required for " +
					"`slots`, not allowed for `exclusive`.",
				Optional: true,
			},
			"reserve_percent": schema.Float64Attribute{
				MarkdownDescription: "Share of each device's memory that is not divided into slots, in percent, from " +
					"0 to below 100, for `slots` only: what the driver and CUDA itself need. Defaults to 3.",
				Optional: true,
			},
			"strategy": choice("How members are distributed over a host's devices: `spread` (evenly over "+
				"all) or `pack` (onto as few as possible).", string(domain.Spread)),
			"on_foreign_process": choice("What happens to a device used by a process that belongs to no member: "+
				"`avoid` (it is not allocated meanwhile), `warn` (it is allocated, with a warning, if no other "+
				"device is left) or `ignore` (it is allocated like any other).", string(domain.ForeignAvoid)),
			"slots": schema.Int64Attribute{
				MarkdownDescription: "Total number of slots of all devices; an exclusive device counts as one.",
				Computed:            true,
			},
			"device_slots": schema.MapAttribute{
				MarkdownDescription: "Number of slots of each device, by its UUID.",
				ElementType:         types.Int64Type,
				Computed:            true,
			},
			"unhealthy": schema.MapAttribute{
				MarkdownDescription: "What is wrong with devices of the pool, and on which host, by UUID; empty if " +
					"all can be used. " +
					"While it is not empty, each plan shows it as a change, because the pool is not as declared. An " +
					"apply checks the devices again.",
				ElementType: types.StringType,
				Computed:    true,
			},
			"timeouts": resourcekit.TimeoutsAttribute(ctx, defaultTimeout,
				"It covers the wait for the agents of hosts that have just joined the cluster.", ""),
		},
	}
}

func selectorAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"model": schema.StringAttribute{
			MarkdownDescription: "Pattern that must match the whole model name, such as `Tesla V100*`: `*` matches " +
				"any characters, `?` exactly one, and `[a-c]` one of a set. Defaults to none: any model.",
			Optional: true,
		},
		"memory_mib": schema.Int64Attribute{
			MarkdownDescription: "Minimum memory of each device, in MiB. Defaults to none.",
			Optional:            true,
		},
		"hosts": schema.ListAttribute{
			MarkdownDescription: "Names of the allowed hosts. Defaults to none: any host is allowed.",
			ElementType:         types.StringType,
			Optional:            true,
			Validators:          []validator.List{listvalidator.NoNullValues()},
		},
		"labels": schema.MapAttribute{
			MarkdownDescription: "Labels that a host must have, with exactly these values. Defaults to none: any " +
				"host is allowed.",
			ElementType: types.StringType,
			Optional:    true,
			Validators:  []validator.Map{mapvalidator.NoNullValues()},
		},
		"max_per_host": schema.Int64Attribute{
			MarkdownDescription: "Maximum number of devices chosen on each host, in index order. 0, the " +
				"default, means all.",
			Optional: true,
		},
	}
}
