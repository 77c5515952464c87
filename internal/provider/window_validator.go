package provider

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// isWindow checks that a string is a window of time over which an engine tells of utilisation.
type isWindow struct{}

func (isWindow) Description(context.Context) string { return "A duration from 1s to 10m." }

func (v isWindow) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (isWindow) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	text := req.ConfigValue.ValueString()
	if d, err := time.ParseDuration(text); err != nil || d < engine.ShortestWindow || d > engine.LongestWindow {
		resp.Diagnostics.AddAttributeError(req.Path, "Invalid window", fmt.Sprintf(`%s: %q is not a window of time that agents remember; "1s" to "10m" is allowed`, req.Path, text))
	}
}
