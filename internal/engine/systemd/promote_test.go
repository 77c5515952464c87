package systemd

import (
	"errors"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/relay"
)

// TestPromoteAgain: once the store has moved, a promotion that failed can be repeated: it starts the controller.
func TestPromoteAgain(t *testing.T) {
	r := newRack(t, nil)
	from, to, err := r.Promote(t.Context())
	if err != nil || from != "gpu1" || to != "gpu1" {
		t.Errorf("it moved from %q to %q (%v)", from, to, err)
	}
	if !r.calls["start gpu1"] {
		t.Errorf("no controller was started: %v", r.calls)
	}
	r.ref.Endpoint = "ssh://gpu2"
	if _, _, err := r.Promote(t.Context()); err == nil || !strings.Contains(err.Error(), "can be reached") {
		t.Errorf("on another host: %v", err)
	}
}

// TestPromoteToAbsent: the error for a host that can't be reached, or is not in the cluster, names it once.
func TestPromoteToAbsent(t *testing.T) {
	for absence, want := range map[error]string{
		engine.ErrUnreachable: "gpu2 can't be reached: ", relay.ErrOutside: "gpu2: " + relay.ErrOutside.Error(),
	} {
		r := newRack(t, map[string]error{"gpu1": engine.ErrUnreachable, "gpu2": absence})
		r.ref.Endpoint = "ssh://gpu2"
		_, _, err := r.Promote(t.Context())
		if !errors.Is(err, absence) || !strings.HasPrefix(err.Error(), want) ||
			strings.Count(err.Error(), "gpu2") != 1 {
			t.Errorf("it ends with %v, want %s", err, want)
		}
	}
}

// TestPromoteUninformed: the controller starts even if another host could not be informed, which is still an error.
func TestPromoteUninformed(t *testing.T) {
	r := newRack(t, map[string]error{"gpu1": engine.ErrUnreachable})
	r.ref.Endpoint = "ssh://gpu2"
	broken := errors.New("disk full")
	r.unrestored = map[string]error{"gpu3": broken}
	if _, _, err := r.Promote(t.Context()); err == nil || !strings.Contains(err.Error(), "host gpu3: ") ||
		!strings.Contains(err.Error(), broken.Error()) {
		t.Errorf("it ends with %v", err)
	}
	if !r.calls["restore gpu2"] || !r.calls["start gpu2"] {
		t.Errorf("no controller was started: %v", r.calls)
	}
}
