package resourcekit

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
)

// InvalidDuration is the summary of errors about durations.
const InvalidDuration = "Invalid duration"

// isDuration checks that a string is a duration. Unlike timetypes, it names the attribute, which Terraform does not do
// for attributes within a map.
type isDuration struct{}

func (isDuration) Description(context.Context) string {
	return `A duration such as "500ms", "90s" or "2h30m".`
}

func (v isDuration) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (isDuration) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	if _, err := time.ParseDuration(req.ConfigValue.ValueString()); err != nil {
		resp.Diagnostics.AddAttributeError(req.Path, InvalidDuration,
			fmt.Sprintf(`%s: %q is not a valid duration; use a number with a unit, such as "500ms", "90s" or "2h30m"`,
				req.Path, req.ConfigValue.ValueString()))
	}
}

// IsDuration checks that a string is a duration.
func IsDuration() validator.String { return isDuration{} }
