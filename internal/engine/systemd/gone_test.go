package systemd

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/relay"
)

// TestGoneHost: a host that is gone prevents no removal once it was forgotten, or if it was reinstalled; until then, an
// error says how to forget it. Without the store host, nothing at all is removed.
func TestGoneHost(t *testing.T) {
	dead := fmt.Errorf("host %w", engine.ErrUnreachable)
	forgotten := absence{
		Since: map[string]time.Time{"gpu3": {}}, Lost: map[string]bool{"gpu3": true},
		Forgotten: map[string]bool{"gpu3": true},
	}
	for name, c := range map[string]struct {
		unanswered map[string]error
		absent     absence
		// fails is what the errors contain; empty for none. dissolved are the hosts that leave the cluster.
		fails     string
		dissolved []string
	}{
		"none":            {nil, absence{}, "", []string{"gpu1", "gpu2", "gpu3"}},
		"for a moment":    {map[string]error{"gpu3": dead}, absence{}, "host gpu3: ", []string{"gpu2"}},
		"for good":        {map[string]error{"gpu3": dead}, forgotten, "", []string{"gpu1", "gpu2"}},
		"reinstalled":     {map[string]error{"gpu3": relay.ErrOutside}, absence{}, "", []string{"gpu1", "gpu2"}},
		"back after all":  {nil, forgotten, "", []string{"gpu1", "gpu2", "gpu3"}},
		"with the store":  {map[string]error{"gpu1": dead}, absence{}, " promote ", nil},
		"its store wiped": {map[string]error{"gpu1": relay.ErrOutside}, absence{}, " promote ", nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRack(t, c.unanswered)
			r.put(relay.AbsentKey, c.absent)
			check := func(what string, err error) {
				t.Helper()
				if (err != nil) != (c.fails != "") || !strings.Contains(fmt.Sprint(err), c.fails) {
					t.Errorf("%s: %v", what, err)
				}
			}
			if c.unanswered["gpu1"] == nil { // these don't ask for the store
				check("files", r.RemoveFiles(t.Context(), []string{"sha256:1"}))
				check("folders", r.RemoveFolders(t.Context(), []domain.KeptFolder{{Host: "gpu2"}, {Host: "gpu3"}}))
			}
			err := r.Dissolve(t.Context())
			check("the cluster", err)
			if c.fails == "host gpu3: " && !strings.Contains(err.Error(),
				"forget --engine systemd --cluster lab --endpoint ssh://gpu1 --host gpu3") {
				t.Errorf("it says %v", err)
			}
			var left, stopped []string
			for _, call := range slices.Sorted(maps.Keys(r.calls)) {
				if host, is := strings.CutPrefix(call, "leave "); is {
					left = append(left, host)
				}
				if host, is := strings.CutPrefix(call, "stop "); is {
					stopped = append(stopped, host)
				}
			}
			if !slices.Equal(left, c.dissolved) {
				t.Errorf("%v left", left)
			}
			if (len(stopped) > 0) != (len(left) > 0) {
				t.Errorf("agents were stopped on %v", stopped)
			}
		})
	}
}
