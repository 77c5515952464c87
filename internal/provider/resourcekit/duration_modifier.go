package resourcekit

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
)

// sameDuration plans the state's duration if the configured one is equal: "60s" does not change the
// "1m0s" that an import found.
type sameDuration struct{}

func (sameDuration) Description(context.Context) string {
	return "Durations of equal length are the same, however they are written."
}

func (m sameDuration) MarkdownDescription(ctx context.Context) string { return m.Description(ctx) }

func (sameDuration) PlanModifyString(
	_ context.Context, req planmodifier.StringRequest, resp *planmodifier.StringResponse,
) {
	if req.StateValue.IsNull() || req.PlanValue.IsNull() || req.PlanValue.IsUnknown() {
		return
	}
	stored, errStored := time.ParseDuration(req.StateValue.ValueString())
	planned, errPlanned := time.ParseDuration(req.PlanValue.ValueString())
	if errStored == nil && errPlanned == nil && stored == planned {
		resp.PlanValue = req.StateValue
	}
}

// SameDuration plans the state's duration if the configured one is equal to it.
func SameDuration() planmodifier.String { return sameDuration{} }
