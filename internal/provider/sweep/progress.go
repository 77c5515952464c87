package sweep

import (
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	resourceschema "github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
	"github.com/trainyard/terraform-provider-trainyard/internal/sweep"
)

// ProgressModel is how runs report their progress.
type ProgressModel struct {
	Pattern   string        `tfsdk:"pattern"`
	Threshold types.Float64 `tfsdk:"threshold"`
	Settle    types.String  `tfsdk:"settle"`
}

func progressAttributes() map[string]resourceschema.Attribute {
	return map[string]resourceschema.Attribute{
		"pattern": resourceschema.StringAttribute{
			MarkdownDescription: "Regular expression ([RE2](https://github.com/google/re2/wiki/Syntax)) for lines " +
				"that report progress. A group named `step` matches the number of the step, which counts up: `step " +
				"(?P<step>\\d+)`. Without the group, each matching line is a step.",
			Required: true,
		},
		"threshold": resourceschema.Float64Attribute{
			MarkdownDescription: "Minimum gain in throughput from one more run on a GPU or host, as a share of the " +
				"throughput per run so far, from 0 to 1. Defaults to " + strconv.FormatFloat(domain.DefaultRunGain, 'g',
				-1, 64) + ".",
			Optional: true,
		},
		"settle": duration("Minimum time for which a number of concurrent runs is measured before another is tried, " +
			"from `1s` to `1h`. Half of it is for runs to warm up. Defaults to `1m`."),
	}
}

// parallelismModel is what was found out about the number of parallel runs that finish the most.
type parallelismModel struct {
	Level      *int64                   `tfsdk:"level"`
	Settled    bool                     `tfsdk:"settled"`
	Throughput map[string]types.Float64 `tfsdk:"throughput"`
	Reason     string                   `tfsdk:"reason"`
}

func parallelismAttribute() schema.Attribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: "Number of concurrent runs with the highest total throughput, as found so far; null for " +
			"a sweep without `progress`.",
		Computed: true,
		Attributes: map[string]schema.Attribute{
			"level": computedNumber("Current maximum number of this sweep's runs per GPU, or per host for runs " +
				"without GPUs; null if only room limits it."),
			"settled": schema.BoolAttribute{
				MarkdownDescription: "Whether the best number has been found: `level` no longer changes.",
				Computed:            true,
			},
			"throughput": schema.MapAttribute{
				MarkdownDescription: "Total steps per second of the runs on a GPU or host, by their number. All " +
					"values are scaled to the runs that were measured first.",
				ElementType: types.Float64Type,
				Computed:    true,
			},
			"reason": resourcekit.ComputedText("Reason for this number."),
		},
	}
}

// parallelismOf returns what was found out about a sweep; nil for one without progress.
func parallelismOf(found reconcile.Sweep) *parallelismModel {
	if found.Spec.Progress == nil {
		return nil
	}
	p := sweep.Parallelism(found.Document, found.Parallelism)
	m := parallelismModel{
		Settled: p.Settled, Throughput: map[string]types.Float64{},
		Reason: sweep.ParallelismReason(found.Document, found.Parallelism),
	}
	if p.Unknown == "" {
		m.Level = new(int64(p.Level))
	}
	for n, makes := range p.Throughput {
		m.Throughput[strconv.Itoa(n)] = types.Float64Value(makes)
	}
	return &m
}
