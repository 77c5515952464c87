//go:build linux

package systems_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
)

// A policy adds brokers, which get partitions, and removes one when it has none left, but keeps as many as a topic has
// replicas. No acknowledged record is lost, and all plans are empty.
func TestSystemKafkaPolicy(t *testing.T) {
	l := newKafka(t)
	var wanted atomic.Int64
	wanted.Store(100)
	load := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"load": %d.5}`, wanted.Load())
	}))
	t.Cleanup(load.Close)
	l.Write("main.tf", l.beside(readmeOf(t, "kafka"), fmt.Sprintf(`
  rebalancer = { program = %q, port = 17292 }
  autoscale = {
    min                  = 1
    max                  = 3
    interval             = "1s"
    window               = "1s"
    cooldown             = "1s"
    stabilisation_window = "1s"
    load                 = { url = %q }
    algorithm            = { target = { value = 100 } }
  }
`, acctest.Build(t, acctest.Rebalancer), load.URL)))
	l.Must("get")
	l.Must("apply", "-auto-approve")
	l.connect()
	l.await("one broker", 1)

	wanted.Store(200)
	l.await("a second broker", 2)
	l.create("events", 2)
	l.await("the topic", 2)
	l.write("events")

	wanted.Store(300)
	acctest.Eventually(t, "a third broker, with its share of the partitions", func() bool {
		return maps.Equal(owned(l.await("a third broker", 3), "events"), map[int32]int{0: 2, 1: 2, 2: 2})
	})
	l.write("events")
	l.ExpectNoChange("with two brokers more than it began with")

	wanted.Store(50)
	if got, want := owned(l.await("two brokers again", 2),
		"events"), map[int32]int{0: 3, 1: 3}; !maps.Equal(got, want) {
		t.Errorf("after a broker went, the others have %v copies, want %v", got, want)
	}
	acctest.Eventually(t, "the guard to keep the second broker", func() bool {
		return slices.ContainsFunc(acceptance.Recorded(t, l.engine),
			acceptance.Outcomes(autoscale.OutcomeUnchanged, 2, 2, "1 wanted, but guards.at_least requires 2"))
	})
	l.write("events")
	l.expectAll("events", "after brokers came and went")
	if t.Failed() {
		acceptance.Explain(t, acctest.Build(t, acctest.Provider), "kafka/broker", "--endpoint", l.StateDir)
	}
	l.ExpectNoChange("after all")

	l.Must("destroy", "-auto-approve")
	l.must(os.RemoveAll(filepath.Join(l.StateDir, "lab", "work"))) // the data is the user's to remove
	l.ExpectNobody("after the destroy")
}
