package systemd

import (
	"errors"
	"fmt"
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

// TestMoveStore: what the former store host accepted while it was copied is on the new one. What that accepted itself
// is not replaced.
func TestMoveStore(t *testing.T) {
	key := func(n int) engine.Key { return engine.Key{Kind: placedKind, Name: fmt.Sprint("late-", n)} }
	for name, c := range map[string]struct {
		// changes is how often the former store host changes, each time that it was copied.
		changes int
		// taken means that the new one changes, too.
		taken bool
		fails string
	}{
		"unchanged":               {0, false, ""},
		"changed":                 {1, false, ""},
		"changed repeatedly":      {3, false, ""},
		"changed again and again": {moves, false, "lacks the last changes"},
		"both changed":            {1, true, relay.ErrChanged.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRack(t, nil)
			p, err := r.find(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			stored, deposed := map[string]bool{}, false
			r.restored = func(host string, contents relay.Contents) error {
				switch host {
				case "gpu1":
					r.mu.Lock()
					defer r.mu.Unlock()
					if contents.Over != nil && contents.Over.Sequence != p.ledger.Sequence+r.puts {
						return relay.ErrChanged
					}
					deposed = true
				case "gpu2":
					if contents.Over != nil && c.taken {
						return relay.ErrChanged
					}
					clear(stored)
					for _, item := range contents.Items {
						stored[item.String()] = true
					}
					if r.puts < c.changes {
						item := engine.Item{Key: key(r.puts), Data: []byte("{}")}
						_, err := relay.Put.Ask(t.Context(), p.store.Client, r.ref.Name, item)
						return err
					}
				}
				return nil
			}
			err = r.moveStore(t.Context(), p, "gpu2", p.hosts)
			if (err != nil) != (c.fails != "") || !strings.Contains(fmt.Sprint(err), c.fails) {
				t.Errorf("it ends with %v", err)
			}
			if deposed == c.taken {
				t.Errorf("whether the former store host has stepped down: %t", deposed)
			}
			for n := range c.changes {
				if c.fails == "" && !stored[key(n).String()] {
					t.Errorf("change %d of %d is lost", n+1, c.changes)
				}
			}
		})
	}
}
