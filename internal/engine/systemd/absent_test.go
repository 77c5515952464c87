package systemd

import (
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

func TestAbsence(t *testing.T) {
	type unreached = map[string]time.Duration
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	hosts := map[string]domain.Host{"a": {}, "b": {}, "c": {}}
	since := func(ago time.Duration) map[string]time.Time { return map[string]time.Time{"a": now.Add(-ago)} }
	lost := map[string]bool{"a": true}
	for name, c := range map[string]struct {
		before          absence
		unreached       unreached
		lost, forgotten bool
	}{
		"for a moment":      {absence{}, unreached{"a": 0}, false, false},
		"for long":          {absence{Since: since(lostAfter)}, unreached{"a": lostAfter}, true, false},
		"with most of them": {absence{Since: since(lostAfter)}, unreached{"a": lostAfter, "b": lostAfter}, false, false},
		// Nobody looked before, or the clock has made a step.
		"noticed for a moment": {absence{Since: since(time.Hour)}, unreached{"a": lostAfter - 1}, false, false},
		"lost before":          {absence{Since: since(time.Hour), Lost: lost}, unreached{"a": 0, "b": 0}, true, false},
		"forgotten": {
			absence{Since: since(0), Lost: lost, Forgotten: lost}, unreached{"a": 0}, true, true,
		},
		"forgotten, and is back": {absence{Since: since(0), Lost: lost, Forgotten: lost}, nil, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			next := c.before.next(hosts, c.unreached, now)
			if next.Lost["a"] != c.lost || next.Forgotten["a"] != c.forgotten || len(next.Since) != len(c.unreached) {
				t.Errorf("it is %+v", next)
			}
		})
	}
}
