package autoscale

import (
	"math"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// rounding is the relative difference up to which two numbers count as equal, given float64 rounding: the mean of 0.1
// and 0.2 is slightly more than 0.15, and must not ask for one more member. Kubernetes uses whole thousandths of a
// unit, whose sums are exact.
const rounding = 1e-9

// wholeMembers returns x rounded up to whole members, from 0 to [domain.MaxReplicas]; 0 for NaN.
func wholeMembers(x float64) int {
	switch {
	case x >= domain.MaxReplicas:
		return domain.MaxReplicas
	case x > 0:
		return int(math.Ceil(x * (1 - rounding)))
	}
	return 0
}

// finite reports whether a value is neither NaN nor infinite. A query that divides by zero returns such values.
func finite(value float64) bool { return !math.IsNaN(value) && !math.IsInf(value, 0) }

// undecided is the proposal of a metric that can't tell: the count stays, and no other metric may make it smaller.
func undecided(in asking, why string) proposal {
	return proposal{count: in.count, abstains: true, why: why}
}

// notANumber is the reason if a metric's value is not a number.
const notANumber = "the value is not a number"
