//go:build linux

package process_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
)

// Guards and a metric query a real Prometheus: nothing is removed while no series says whether the role is busy, nor
// while it is busy; then down to the number of members that another query returns.
func TestAccScalingGuardsFromPrometheus(t *testing.T) {
	l := newFollowLab(t)
	var load, needed, applications atomic.Int64
	load.Store(3)
	needed.Store(2)
	applications.Store(-1) // no master is scraped yet
	url := acctest.StartPrometheus(t, acctest.Exporter{Instance: "master", Metrics: func(float64) string {
		text := fmt.Sprintf("load %d\nneeded{topic=\"a\"} 1\nneeded{topic=\"b\"} %d\n", load.Load(), needed.Load())
		if n := applications.Load(); n >= 0 {
			text += fmt.Sprintf("applications{pool=\"a\"} %d\napplications{pool=\"b\"} 0\n", n)
		}
		return text
	}})
	prometheus := acceptance.Prometheus{TB: t, Client: http.DefaultClient, URL: url}
	source := func(query string) string {
		return fmt.Sprintf("prometheus = { url = %q, query = %q }", url, query)
	}
	decides := newDial(t, 0)
	l.apply(theCluster, quiet, follows(fmt.Sprintf(`min = 1
  max      = 5
  scale_in = { stabilisation_window = "0s" }
  guards = {
    busy     = { %s }
    at_least = { %s }
  }
  metrics = {
    load    = { source = { %s }, algorithm = { target = { value = 1, per = "total" } } }
    decides = { source = { queue = { http = { url = %q, path = "length" } } } }
  }`, source("sum(applications)"), source("max(needed)"), source("load"), decides.URL)))
	decide := func(when string) {
		t.Helper()
		acctest.Eventually(t, "Prometheus to scrape "+when, func() bool {
			found, err := prometheus.Query(when)
			l.must(err)
			return len(found) > 0
		})
		decides.awaitAsked(t)
	}

	l.awaitWorkers(3)
	load.Store(1)
	decide("load == 1")
	applications.Store(1)
	decide("sum(applications) == 1")
	applications.Store(0)
	l.awaitWorkers(2)
	needed.Store(1)
	l.awaitWorkers(1)
	l.expectCounts(1, 3, 2, 1)
	for _, reason := range []string{
		"2 wanted, but it is unknown whether the role is busy: the query sum(applications) returns nothing",
		"2 wanted, but the role is busy: sum(applications) is 1",
		"1 wanted, but guards.at_least requires 2: max(needed)",
	} {
		l.awaitHistory(reason, func(e autoscale.Entry) bool { return strings.Contains(e.Why(), reason) })
	}
}
