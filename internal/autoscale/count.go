package autoscale

import (
	"math"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// rounding is by which share two numbers may differ that are the same but for the rounding of float64: the mean of 0.1
// and 0.2 is a little more than 0.15, and that must not ask for one member more. Kubernetes has whole thousandths of a
// unit, whose sums are exact.
const rounding = 1e-9

// wholeMembers returns the number of members that carry what x members would: x rounded up, from 0 to
// [domain.MaxReplicas]. Without a number it is 0.
func wholeMembers(x float64) int {
	switch {
	case x >= domain.MaxReplicas:
		return domain.MaxReplicas
	case x > 0:
		return int(math.Ceil(x * (1 - rounding)))
	}
	return 0
}

// finite reports whether a value is a number, and not infinite: a query that divides by zero has NaN or an infinity for
// an answer.
func finite(value float64) bool { return !math.IsNaN(value) && !math.IsInf(value, 0) }

// undecided is what a metric asks for that can't tell: that the count stays, and that no other metric makes it smaller.
func undecided(in asking, why string) proposal {
	return proposal{count: in.count, abstains: true, why: why}
}

// notANumber is why a metric can't tell whose value is none.
const notANumber = "the value is not a number"
