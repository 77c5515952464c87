package meter

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

func TestTallies(t *testing.T) {
	const numbered = `step (?P<step>\d+)`
	for name, test := range map[string]struct {
		pattern string
		lines   []string
		count   int
		steps   float64
		says    string
	}{
		"steps":                    {numbered, steps(11, 12, 15), 3, 4, ""},
		"one step":                 {numbered, steps(11), 1, 0, ""},
		"from the beginning again": {numbered, steps(98, 99, 1, 2), 4, 2, ""},
		"lines":                    {"done", slices.Repeat([]string{"batch done", "saving"}, 5), 5, 4, ""},
		"nothing":                  {"done", []string{"saving"}, 0, 0, ""},
		"too many lines": {
			"done", slices.Repeat([]string{"done"}, maxLines), 0, 0, "at least 20000 lines since 2026",
		},
		"too large":             {`(?P<step>\S+)`, []string{"0", "1.7e308", "0", "1.7e308"}, 0, 0, "too large"},
		"by what is no pattern": {"(", steps(1), 0, 0, "missing closing )"},
	} {
		t.Run(name, func(t *testing.T) {
			log := Log{Member: "lr-a-0", Host: "h1", Since: noon}
			m := patient(writes(map[string][]string{"lr-a-0": test.lines}))
			got := m.Tallies(t.Context(), domain.ProgressSource{Pattern: test.pattern}, []Log{log})[log]
			if test.says != "" {
				if got.Err == nil || !strings.Contains(got.Err.Error(), test.says) {
					t.Errorf("it says %v", got.Err)
				}
				return
			}
			if got.Err != nil || got.Lines != test.count || got.Steps != test.steps || got.At.IsZero() {
				t.Errorf("it is %+v", got)
			}
		})
	}
}

// A log that can't be read does not affect others.
func TestTalliesOfAHostThatHangs(t *testing.T) {
	t.Parallel()
	e := &fake{logs: func(ctx context.Context, member string, _ engine.LogOptions) ([]string, error) {
		switch member {
		case "gone":
			return nil, engine.ErrNotFound
		case "hangs":
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return steps(1, 2), nil
	}}
	logs := []Log{{Member: "hangs", Host: "h1"}, {Member: "gone", Host: "h2"}, {Member: "writes", Host: "h2"}}
	var got map[Log]Tally
	inTime(func(limit time.Duration) (late bool) {
		m := New(e)
		m.Limit = limit
		got = m.Tallies(t.Context(), domain.ProgressSource{Pattern: "step"}, logs)
		return !errors.Is(got[logs[1]].Err, engine.ErrNotFound) || got[logs[2]].Err != nil
	}, 100*time.Millisecond)
	if got[logs[0]].Err == nil || !errors.Is(got[logs[1]].Err, engine.ErrNotFound) || got[logs[2]].Err != nil ||
		got[logs[2]].Lines != 2 {
		t.Errorf("%+v", got)
	}
}
