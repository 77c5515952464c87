package policy

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
)

// namesAlgorithm refuses an algorithm that is none: Terraform leaves out of an object what its schema does not know, such as a misspelt name, and what is left
// would be observed.
type namesAlgorithm struct{}

func (namesAlgorithm) Description(context.Context) string { return "has one algorithm" }

func (v namesAlgorithm) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (namesAlgorithm) ValidateObject(_ context.Context, req validator.ObjectRequest, resp *validator.ObjectResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	algorithms := req.ConfigValue.Attributes()
	for _, algorithm := range algorithms {
		if !algorithm.IsNull() {
			return
		}
	}
	resp.Diagnostics.AddAttributeError(req.Path, "No algorithm", fmt.Sprintf(
		"%s: a metric needs one algorithm; there are %q. Leave the attribute out to have the metric observed only", req.Path, slices.Sorted(maps.Keys(algorithms))))
}
