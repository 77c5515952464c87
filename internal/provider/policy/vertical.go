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
			"min": neededNumber("Minimum recommendation, in " + unit + "."), "max": neededNumber("Maximum recommendation, in " + unit + "."),
		})
	}
	return optionalObject("Recommends what members of the role should request, according to what they use, or applies it at their next start, like the Kubernetes Vertical Pod Autoscaler. The recommendation is shown in the history and in `explain`, and exported to Prometheus; "+
		"see the guide \"Autoscaling\". A policy may consist of this alone, without metrics: it then leaves the count alone, as long as that is from `min` to `max`.", map[string]schema.Attribute{
		"cpus":       bounds("Bounds for a member's processors. Defaults to none: they are left alone.", "processors"),
		"memory_mib": bounds("Bounds for a member's memory. Defaults to none: it is left alone.", "MiB"),
		"percentile": scalingNumber(fmt.Sprintf("Share of the time, in percent, in which a member keeps no more processors busy than recommended. For memory: share of the days, by the peak of the member that uses the most. "+
			"Measurements a day old count half. Above 0, up to 100. Defaults to %d.", domain.DefaultVerticalPercentile)),
		"margin_percent": scalingNumber(fmt.Sprintf("Margin recommended on top of that, in percent, from 0 to %d. Defaults to %d.", domain.MaxVerticalMargin, domain.DefaultVerticalMargin)),
		"learn_for": scalingDuration(fmt.Sprintf("How long members must have been measured before a recommendation is reliable and gets applied, at most `%s`. More memory for members that ran out of it does not wait. Defaults to `%s`.",
			written(domain.MaxLearnFor), written(domain.DefaultLearnFor))),
		"apply": scalingText(fmt.Sprintf("When members get what is recommended: never, it is left to you (`%s`); at their next start, with no restart for it (`%s`); or also at once, if members are processes or systemd units, whose processor limit can change and whose memory limit can rise while they run (`%s`). "+
			"In the last two cases, `resources` of the role is only what they begin with. "+
			"Interchangeable members that the engine distributes by itself, as `swarm` does, all request the same and can only get recommendations. Defaults to `%[1]s`.", domain.ApplyNever, domain.ApplyAtStart, domain.ApplyInPlace)),
	})
}
