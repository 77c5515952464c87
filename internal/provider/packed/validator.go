package packed

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
)

type noNullValues struct{}

// NoNullValues refuses nulls within a packed attribute.
func NoNullValues() validator.String { return noNullValues{} }

func (noNullValues) Description(context.Context) string { return "all values must be configured" }

func (v noNullValues) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (noNullValues) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	err := gaps(req.ConfigValue.ValueString(), func(keys []string, null bool) {
		if !null {
			return
		}
		at := req.Path
		for _, key := range keys {
			at = at.AtMapKey(key)
		}
		resp.Diagnostics.AddAttributeError(at, "Null value", at.String()+" is null: leave it out, or give it a value")
	})
	if err != nil {
		resp.Diagnostics.AddAttributeError(req.Path, "Invalid value", err.Error())
	}
}
