package systemd

import (
	"errors"
	"slices"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// TestFollowMoved: the log of a member continues on its next host if the one that was read last has left the cluster or
// can't be reached. If no other host has it, that host is waited for; the mark is kept until the next log begins.
func TestFollowMoved(t *testing.T) {
	const retired, down = `{"host":"retired","mark":"9"}`, `{"host":"gpu3","mark":"9"}`
	next := engine.LogPart{Lines: []string{"again"}, Next: "1"}
	for name, c := range map[string]struct {
		mark string
		logs map[string]engine.LogPart
		want engine.LogPart
		err  error
	}{
		"retired": {
			retired, map[string]engine.LogPart{"gpu2": next},
			engine.LogPart{Lines: next.Lines, Next: `{"host":"gpu2","mark":"1"}`}, nil,
		},
		"down": {
			down, map[string]engine.LogPart{"gpu2": next},
			engine.LogPart{Lines: next.Lines, Next: `{"host":"gpu2","mark":"1"}`}, nil,
		},
		"down, and staged elsewhere": {
			down, map[string]engine.LogPart{"gpu2": {}}, engine.LogPart{Next: down}, nil,
		},
		"down, and nowhere else": {down, nil, engine.LogPart{}, engine.ErrUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRack(t, map[string]error{"gpu3": engine.ErrUnreachable})
			r.logs = c.logs
			part, err := r.Follow(t.Context(), "job-worker-0", engine.LogPlace{Mark: c.mark})
			if !errors.Is(err, c.err) || part.Next != c.want.Next || !slices.Equal(part.Lines, c.want.Lines) {
				t.Errorf("got %+v (%v), want %+v", part, err, c.want)
			}
		})
	}
}
