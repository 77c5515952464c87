package prometheus

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
)

// Value returns the value of a query and the time of its evaluation, which says nothing about the age of the
// samples behind it. Samples of instant selectors are no older than oldest, in whole seconds, if the Prometheus
// supports that (since 2023); older ones look back 5 minutes, as all do if oldest is 0. A value computed over a
// range of samples is as old as the range. The query has to return a scalar or exactly one series; no series, or
// NaN or infinity, is an error.
func (s Settings) Value(
	ctx context.Context, query string, oldest time.Duration,
) (value float64, at time.Time, err error) {
	c, err := newClient(s, bounded.Answer)
	if err != nil {
		return 0, time.Time{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	const what = "the value"
	lookback := (oldest + time.Second - 1).Truncate(time.Second) // it takes no fractions
	answer, _, _, err := c.api.Query(ctx, query, time.Time{}, v1.WithLookbackDelta(lookback))
	if err != nil {
		return 0, time.Time{}, c.explain(what, query, err)
	}
	switch answer := answer.(type) {
	case *model.Scalar:
		value, at = float64(answer.Value), answer.Timestamp.Time()
	case model.Vector:
		switch {
		case len(answer) > 1 && answer[0] != nil && answer[1] != nil:
			err = fmt.Errorf("it returns %d series, such as %s and %s, instead of one: combine them with sum(…)",
				len(answer), answer[0].Metric, answer[1].Metric)
			return 0, time.Time{}, &QueryError{what, query, true, err}
		case len(answer) != 1 || answer[0] == nil:
			return 0, time.Time{}, fmt.Errorf("the query %s returns nothing", query)
		}
		value, at = float64(answer[0].Value), answer[0].Timestamp.Time()
	case nil:
		return 0, time.Time{}, c.explain(what, query, errors.New("the answer has no result"))
	default:
		err = fmt.Errorf("it returns a %s instead of one value", answer.Type())
		return 0, time.Time{}, &QueryError{what, query, true, err}
	}
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return 0, time.Time{}, fmt.Errorf("the query %s returns %v", query, value)
	}
	return value, at, nil
}
