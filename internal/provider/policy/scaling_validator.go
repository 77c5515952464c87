package policy

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
)

// namesAlgorithm refuses an empty algorithm: Terraform drops attributes that an object's schema lacks, such as a
// misspelt name, and the metric would then only be observed.
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
		"%s: a metric needs one of the algorithms %q. Leave the attribute out to only observe the metric", req.Path,
		slices.Sorted(maps.Keys(algorithms))))
}

// misplaced is an attribute that users may expect here though it is elsewhere. Setting it is always an error; without
// it, Terraform would silently drop what they wrote.
func misplaced(name string) schema.StringAttribute {
	attribute := scalingText(fmt.Sprintf("Not valid here: `%s` is an attribute of the metric, beside `source`. "+
		"Setting it here is an error, as Terraform otherwise silently ignores attributes that a nested object "+
		"does not have.", name))
	attribute.Validators = []validator.String{isMisplaced{name}}
	return attribute
}

type isMisplaced struct{ name string }

func (v isMisplaced) Description(context.Context) string { return v.name + " belongs to the metric" }

func (v isMisplaced) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (v isMisplaced) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() {
		return
	}
	metric := req.Path.ParentPath().ParentPath().ParentPath()
	resp.Diagnostics.AddAttributeError(req.Path, "Attribute in the wrong place",
		fmt.Sprintf("%s: %s belongs to the metric, not to its source: write %s = %s beside source, as %s",
			req.Path, v.name, v.name, req.ConfigValue, metric.AtName(v.name)))
}
