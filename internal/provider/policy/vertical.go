package policy

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// VerticalModel is what members request, by what they use.
type VerticalModel struct {
	CPUs          *AmountBoundsModel `tfsdk:"cpus"`
	MemoryMiB     *AmountBoundsModel `tfsdk:"memory_mib"`
	Percentile    types.Float64      `tfsdk:"percentile"`
	MarginPercent types.Float64      `tfsdk:"margin_percent"`
	LearnFor      types.String       `tfsdk:"learn_for"`
	Apply         *string            `tfsdk:"apply"`
}

// AmountBoundsModel are the bounds of an amount.
type AmountBoundsModel struct {
	Min types.Float64 `tfsdk:"min"`
	Max types.Float64 `tfsdk:"max"`
}

func verticalAttribute() schema.Attribute {
	bounds := func(description, unit string) schema.Attribute {
		return optionalObject(description, map[string]schema.Attribute{
			"min": neededNumber("The least that is recommended, in " + unit + "."), "max": neededNumber("The most that is recommended, in " + unit + "."),
		})
	}
	return optionalObject("What members of the role should request, by what they use: recommended, or applied with their next start, as the Vertical Pod Autoscaler of Kubernetes does it. The recommendation is in the history, in `explain`, and told to Prometheus; "+
		"see the guide \"Autoscaling\". A policy may have this alone, without metrics: then it leaves the count alone, as long as that is from `min` to `max`.", map[string]schema.Attribute{
		"cpus":       bounds("Bounds of the processors of a member. Defaults to none: they are left alone.", "processors"),
		"memory_mib": bounds("Bounds of the memory of a member. Defaults to none: it is left alone.", "MiB"),
		"percentile": scalingNumber(fmt.Sprintf("The part of the time, in percent, in which a member keeps no more processors busy than recommended; of memory, the part of the days, by the peak of the member that uses the most. "+
			"What is a day old counts half. Above 0 to 100. Defaults to %d.", domain.DefaultVerticalPercentile)),
		"margin_percent": scalingNumber(fmt.Sprintf("How much more than that is recommended, in percent, from 0 to %d. Defaults to %d.", domain.MaxVerticalMargin, domain.DefaultVerticalMargin)),
		"learn_for": scalingDuration(fmt.Sprintf("How long members have to have been measured before a recommendation is to be relied on, and is applied, `%s` at most. More memory for members that ran out of it does not wait. Defaults to `%s`.",
			written(domain.MaxLearnFor), written(domain.DefaultLearnFor))),
		"apply": scalingText(fmt.Sprintf("When members get what is recommended: never, it is left to you (`%s`), or with their next start, for which none is restarted (`%s`), or at once, too, where members are processes or units of systemd, which can get another limit of processors, and a higher one of memory, while they run (`%s`). "+
			"What `resources` of the role says is what they begin with then. "+
			"Interchangeable members that the engine distributes by itself, as `swarm` does, all request the same, and can only be recommended something. Defaults to `%[1]s`.", domain.ApplyNever, domain.ApplyAtStart, domain.ApplyInPlace)),
	})
}
