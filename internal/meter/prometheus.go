package meter

import (
	"context"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/prometheus"
)

// queriesAtOnce bounds the concurrent queries to one Prometheus.
const queriesAtOnce = 4

// query is a Prometheus query with the maximum age of its samples.
type query struct {
	domain.PrometheusSource

	oldest time.Duration
}

// askPrometheus requests the value of a query.
func (r *reading) askPrometheus(q query) func() (value, error) {
	return share(r, q, r.semaphore("Prometheus "+q.URL, queriesAtOnce), func(ctx context.Context) (v value, err error) {
		v.value, v.at, err = prometheus.Settings{URL: q.URL, Timeout: r.meter.Limit}.Value(ctx, q.Query, q.oldest)
		return v, err
	}).wait
}
