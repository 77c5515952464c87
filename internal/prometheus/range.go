package prometheus

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"golang.org/x/sync/errgroup"

	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
)

// pointsAtOnce is how many values are requested at once: Prometheus returns at most 11,000 per series.
const pointsAtOnce = 10_000

// Range is a query at times from Start to End that are Step apart.
type Range struct {
	Query      string
	Start, End time.Time
	Step       time.Duration
}

// Points returns the number of times.
func (r Range) Points() int { return int(r.End.Sub(r.Start)/r.Step) + 1 }

// Range returns the values of a query over a range of any length, NaN where there is none. The query
// has to return one series.
func (s Settings) Range(ctx context.Context, r Range) ([]float64, error) {
	c, err := newClient(s, bounded.Series)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	values := make([]float64, r.Points())
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(queriesAtOnce)
	for first := 0; first < len(values); first += pointsAtOnce {
		part := values[first:min(first+pointsAtOnce, len(values))]
		start := r.Start.Add(time.Duration(first) * r.Step)
		group.Go(func() error { return c.askRange(ctx, r, start, part) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for _, value := range values {
		if !math.IsNaN(value) {
			return values, nil
		}
	}
	return nil, fmt.Errorf("the query %s returns nothing from %s to %s", r.Query, r.Start.Format(time.RFC3339),
		r.End.Format(time.RFC3339))
}

// askRange fills in the values from start on.
func (c client) askRange(ctx context.Context, r Range, start time.Time, values []float64) error {
	for i := range values {
		values[i] = math.NaN()
	}
	const what = "the range"
	answer, _, _, err := c.api.QueryRange(ctx, r.Query,
		v1.Range{Start: start, End: start.Add(time.Duration(len(values)-1) * r.Step), Step: r.Step})
	if err != nil {
		return c.explain(what, r.Query, err)
	}
	matrix, ok := answer.(model.Matrix)
	switch {
	case !ok:
		return c.explain(what, r.Query, errors.New("the answer has no range"))
	case len(matrix) > 1:
		return &QueryError{what, r.Query, true, fmt.Errorf(
			"it returns %d series, such as %s and %s, instead of one: combine them with sum(…)", len(matrix),
			matrix[0].Metric, matrix[1].Metric,
		)}
	case len(matrix) == 0 || matrix[0] == nil:
		return nil
	}
	for _, sample := range matrix[0].Values {
		// Timestamps are in milliseconds.
		i := int(math.Round(float64(sample.Timestamp.Time().Sub(start)) / float64(r.Step)))
		if i >= 0 && i < len(values) {
			values[i] = float64(sample.Value)
		}
	}
	return nil
}
