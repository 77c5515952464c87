//go:build linux

package members

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/swarm"
	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/storetest"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/store"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/swarmtest"
)

// TestQuietEvents: changes of objects that are written all the time are not reported, changes of a policy are.
func TestQuietEvents(t *testing.T) {
	e, _ := stored(t, "reported")
	m, err := e.Connection.Manager(t.Context())
	swarmtest.Must(t, err)
	messages, failures := m.Events(t.Context(), events.ListOptions{Filters: watched})
	heard := 0
	// an Engine answers a moment before it begins to report events
	acctest.Eventually(t, "the first event", func() bool {
		heard++
		swarmtest.Leave(t, e.Connection,
			swarm.ConfigSpec{Annotations: swarm.Annotations{Name: fmt.Sprint("heard-", heard)}, Data: []byte("?")})
		select {
		case <-messages:
			return true
		case <-time.After(100 * time.Millisecond):
			return false
		}
	})
	const lock = "group job"
	release, err := store.NewLocks(store.NewItems(e.Swarm), store.NewLeases()).Lock(t.Context(), lock,
		engine.Holder{Who: "ada@gpu1"})
	swarmtest.Must(t, err)
	swarmtest.Must(t, release())
	quiet, last := map[string]bool{spec.LockName("reported", lock): true}, ""
	for _, kind := range storetest.Kinds {
		item, err := e.Items.Put(t.Context(), engine.Item{Key: engine.Key{Kind: kind, Name: "job"}, Data: []byte("a")})
		swarmtest.Must(t, err)
		last = strings.TrimPrefix(item.Where, "config object ")
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
