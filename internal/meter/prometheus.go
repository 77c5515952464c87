package meter

import (
	"context"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/prometheus"
)

// queriesAtOnce bounds how many queries a Prometheus has to answer at once.
const queriesAtOnce = 4

// askPrometheus notes a query.
func (r *reading) askPrometheus(s domain.PrometheusSource) func() (value, error) {
	return share(r, s, r.lane("Prometheus "+s.URL, queriesAtOnce), func(ctx context.Context) (v value, err error) {
		v.value, v.at, err = prometheus.Settings{URL: s.URL, Timeout: r.meter.Limit}.Value(ctx, s.Query)
		return v, err
	}).wait
}
