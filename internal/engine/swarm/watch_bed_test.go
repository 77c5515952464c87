package swarm

import (
	"testing"

	"github.com/docker/docker/api/types/events"
	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/storetest"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// TestQuietEvents: of what is written all the time nobody is told, and of a policy everybody.
func TestQuietEvents(t *testing.T) {
	e, _ := stored(t, "reported")
	m, err := e.connection.Manager(t.Context())
	must(t, err)
	messages, failures := m.Events(t.Context(), events.ListOptions{Filters: watched})
	release, err := e.Lock(t.Context(), jobLock, ada)
	must(t, err)
	must(t, release())
	quiet, last := map[string]bool{spec.LockName("reported", jobLock): true}, ""
	for _, kind := range storetest.Kinds {
		key := engine.Key{Kind: kind, Name: "job"}
		puts(t, e, key, 1)
		last = e.annotations(key, 1).Name
		quiet[last] = !kind.Watched
	}
	found := map[string]bool{}
	for {
		select {
		case message := <-messages:
			about := message.Actor.Attributes["name"]
			if _, ours := quiet[about]; ours {
				found[about] = spec.IsQuiet(about)
			}
			if about != last {
				continue
			}
			if diff := cmp.Diff(quiet, found); diff != "" {
				t.Errorf("which events are quiet (-want +got):\n%s", diff)
			}
			return
		case err := <-failures:
			t.Fatal(err)
		}
	}
}
