package systemd

import (
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

func TestAbsence(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	hosts := map[string]domain.Host{"a": {}, "b": {}, "c": {}}
	away := func(names ...string) map[string]bool {
		unreached := map[string]bool{}
		for _, name := range names {
			unreached[name] = true
		}
		return unreached
	}
	since := func(ago time.Duration) map[string]time.Time { return map[string]time.Time{"a": now.Add(-ago)} }
	for name, c := range map[string]struct {
		before          absence
		unreached       map[string]bool
		looked          time.Duration
		lost, forgotten bool
	}{
		"for a moment":       {absence{}, away("a"), time.Hour, false, false},
		"for long":           {absence{Since: since(lostAfter)}, away("a"), time.Hour, true, false},
		"with most of them":  {absence{Since: since(lostAfter)}, away("a", "b"), time.Hour, false, false},
		"when nobody looked": {absence{Since: since(time.Hour)}, away("a"), lostAfter - 1, false, false},
		"lost before":        {absence{Since: since(time.Hour), Lost: away("a")}, away("a", "b"), 0, true, false},
		"forgotten": {
			absence{Since: since(0), Lost: away("a"), Forgotten: away("a")}, away("a"), 0, true, true,
		},
		"forgotten, and is back": {
			absence{Since: since(0), Lost: away("a"), Forgotten: away("a")}, away(), 0, false, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			next := c.before.next(hosts, c.unreached, now.Add(-c.looked), now)
			if next.Lost["a"] != c.lost || next.Forgotten["a"] != c.forgotten || len(next.Since) != len(c.unreached) {
				t.Errorf("it is %+v", next)
			}
		})
	}
}
