package policy

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// VerticalModel is how requests follow usage.
type VerticalModel struct {
	CPUs          *AmountBoundsModel `tfsdk:"cpus"`
	MemoryMiB     *AmountBoundsModel `tfsdk:"memory_mib"`
	Percentile    types.Float64      `tfsdk:"percentile"`
	MarginPercent types.Float64      `tfsdk:"margin_percent"`
	LearnFor      types.String       `tfsdk:"learn_for"`
	Apply         *string            `tfsdk:"apply"`
}

// AmountBoundsModel is the bounds of an amount.
type AmountBoundsModel struct {
	Min types.Float64 `tfsdk:"min"`
	Max types.Float64 `tfsdk:"max"`
}

func verticalAttribute() schema.Attribute {
	bounds := func(description, unit string) schema.Attribute {
		return optionalObject(description, map[string]schema.Attribute{
			"min": neededNumber("Minimum recommendation, in " + unit + "."),
			"max": neededNumber("Maximum recommendation, in " + unit + "."),
		})
	}
	return optionalObject("Recommends resource requests for members of the role, according to their usage, and can "+
		"apply them, like the Kubernetes Vertical Pod Autoscaler, see above. Set `cpus`, `memory_mib` or both. A "+
		"policy may consist of this alone, without metrics: it then leaves the count alone, as long as it is within "+
		"`min` and `max`.", map[string]schema.Attribute{
		"cpus": bounds("Bounds of a member's CPU request, 0.01 or more. Defaults to none: it is left alone.",
			"CPUs"),
		"memory_mib": bounds("Bounds of a member's memory request. Defaults to none: it is left alone.", "MiB"),
		"percentile": scalingNumber(fmt.Sprintf("For CPUs, the share of time in which a member uses no more than "+
			"recommended, in percent. For memory, the share of days, by the day's peak of the member that "+
			"uses the most. Measurements a day old count half. Above 0, up to 100. Defaults to %d.",
			domain.DefaultVerticalPercentile)),
		"margin_percent": scalingNumber(fmt.Sprintf(
			"Margin added to the recommendation, in percent, from 0 to %d. Defaults to %d.", domain.MaxVerticalMargin,
			domain.DefaultVerticalMargin,
		)),
		"learn_for": scalingDuration(fmt.Sprintf("How long members must have been measured before a recommendation "+
			"counts as reliable and is applied, at most `%s`. More memory for members that ran out of it does not "+
			"wait. Defaults to `%s`.",
			written(domain.MaxLearnFor), written(domain.DefaultLearnFor))),
		"apply": scalingText(fmt.Sprintf("When recommendations are applied: never (`%s`), when a member next starts "+
			"(`%s`), or also at once where a running member can be resized (`%s`), see above. With the last two, the "+
			"role's `resources` are only the initial requests, and interchangeable members that the engine itself "+
			"places, as `swarm` does, can't get them. Defaults to `%[1]s`.",
			domain.ApplyNever, domain.ApplyAtStart, domain.ApplyInPlace)),
	})
}
