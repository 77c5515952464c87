package resourcekit

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/trainyard/terraform-provider-trainyard/internal/prometheus"
)

// InvalidPrometheus is the summary of errors about Prometheus settings.
const InvalidPrometheus = "Invalid prometheus"

// isPrometheusURL checks that a string is the URL of a Prometheus.
type isPrometheusURL struct{}

func (isPrometheusURL) Description(context.Context) string { return "An http:// or https:// address." }

func (v isPrometheusURL) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (isPrometheusURL) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	if _, err := prometheus.ParseURL(req.ConfigValue.ValueString()); err != nil {
		resp.Diagnostics.AddAttributeError(req.Path, InvalidPrometheus, fmt.Sprintf("%s: %v", req.Path, err))
	}
}

// isTimeout checks that a string is a duration above 0.
type isTimeout struct{}

func (isTimeout) Description(context.Context) string { return "A duration above 0." }

func (v isTimeout) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (isTimeout) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	text := req.ConfigValue.ValueString()
	if d, err := time.ParseDuration(text); err != nil || d <= 0 {
		resp.Diagnostics.AddAttributeError(req.Path, InvalidDuration,
			fmt.Sprintf(`%s: %q is not a valid timeout; use a duration above 0, such as "30s"`, req.Path, text))
	}
}

// areQueries checks that the keys of a map are known quantities.
type areQueries struct{}

func (areQueries) Description(context.Context) string { return "Queries by quantity." }

func (v areQueries) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (areQueries) ValidateMap(_ context.Context, req validator.MapRequest, resp *validator.MapResponse) {
	quantities := prometheus.Quantities()
	for quantity := range req.ConfigValue.Elements() {
		if !slices.Contains(quantities, quantity) {
			at := req.Path.AtMapKey(quantity)
			resp.Diagnostics.AddAttributeError(at, InvalidPrometheus,
				fmt.Sprintf("%s: unknown quantity %q; use one of %q", at, quantity, quantities))
		}
	}
}

// IsPrometheusURL checks that a string is the URL of a Prometheus.
func IsPrometheusURL() validator.String { return isPrometheusURL{} }

// IsTimeout checks that a string is a duration above 0.
func IsTimeout() validator.String { return isTimeout{} }

// AreQueries checks that a map holds queries by quantity.
func AreQueries() validator.Map { return areQueries{} }
