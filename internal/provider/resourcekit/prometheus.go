package resourcekit

import (
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/prometheus"
)

// DefaultPrometheusTimeout is the default timeout for a Prometheus.
const DefaultPrometheusTimeout = 30 * time.Second

// PrometheusModel is a Prometheus to query.
type PrometheusModel struct {
	URL     string            `tfsdk:"url"`
	Queries map[string]string `tfsdk:"queries"`
	Timeout types.String      `tfsdk:"timeout"`
}

// Expand returns the settings for the Prometheus, with its credentials.
func (m *PrometheusModel) Expand(logins map[string]prometheus.Credentials) (prometheus.Settings, error) {
	address, err := prometheus.ParseURL(m.URL)
	settings := prometheus.Settings{URL: m.URL, Queries: m.Queries}
	if err == nil {
		settings.Credentials = logins[address.Host]
		err = settings.Check()
	}
	if err != nil {
		return prometheus.Settings{}, fmt.Errorf("prometheus.url: %w", err)
	}
	if settings.Timeout, err = time.ParseDuration(StringOr(m.Timeout, DefaultPrometheusTimeout.String())); err != nil {
		return prometheus.Settings{}, fmt.Errorf("prometheus.timeout: %w", err)
	}
	return settings, nil
}
