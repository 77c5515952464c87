package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

func TestAwait(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	event := func() chan struct{} { events := make(chan struct{}, 1); events <- struct{}{}; return events }
	lost := func() chan struct{} { events := make(chan struct{}); close(events); return events }
	silence := func() chan struct{} { return make(chan struct{}) }
	for name, c := range map[string]struct {
		ctx    context.Context
		events func() chan struct{}
		moment time.Time
		want   error
	}{
		"an event":                       {t.Context(), event, time.Time{}, nil},
		"an event before the moment":     {t.Context(), event, time.Now().Add(time.Hour), nil},
		"the moment":                     {t.Context(), silence, time.Now().Add(time.Millisecond), nil},
		"a moment in the past":           {t.Context(), silence, time.Unix(0, 0), nil},
		"the events are lost":            {t.Context(), lost, time.Time{}, engine.ErrEventsLost},
		"cancelled":                      {ended, silence, time.Time{}, context.Canceled},
		"cancelled, and so without more": {ended, lost, time.Time{}, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			if err := engine.Await(c.ctx, c.events(), c.moment); !errors.Is(err, c.want) ||
				c.want == nil && err != nil {
				t.Errorf("the error is %v, not %v", err, c.want)
			}
		})
	}
}
