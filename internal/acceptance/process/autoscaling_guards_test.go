//go:build linux

package process_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
)

// Spark's own page keeps members while an application runs, and while it can't be read; another one tells how many are needed; a metric without an
// algorithm is observed. Of a guard that has never had a value, people are warned.
func TestAccScalingGuards(t *testing.T) {
	l := newFollowLab(t)
	wanted, needed, seen := newDial(t, 3), newDial(t, 1), newDial(t, 812)
	var applications atomic.Int64 // below 0, the master is down
	applications.Store(-1)
	master := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := applications.Load()
		if n < 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		apps := make([]string, n)
		for i := range apps {
			apps[i] = fmt.Sprintf(`{"id": "app-%d", "state": "RUNNING"}`, i)
		}
		_, _ = fmt.Fprintf(w, `{"url": "spark://master:7077", "activeapps": [%s], "status": "ALIVE"}`, strings.Join(apps, ", ")) // who asked has gone
	}))
	t.Cleanup(master.Close)
	metrics := fmt.Sprintf(`metrics = {
    dial = { source = { queue = { http = { url = %q, path = "length" } } }, algorithm = { queue = { per_member = 1 } } }
    seen = { source = { queue = { http = { url = %q, path = "length" } } } }
  }`, wanted.URL, seen.URL)
	l.apply(theCluster, quiet, follows(fmt.Sprintf(`min = 1
  max      = 5
  scale_in = { stabilisation_window = "0s" }
  guards = {
    busy     = { http = { url = "%s/json/", path = "activeapps.#" } }
    at_least = { http = { url = %q, path = "length" } }
  }
  %s`, master.URL, needed.URL, metrics)))
	says := func(text string) func(e autoscale.Entry) bool {
		return func(e autoscale.Entry) bool { return strings.Contains(e.Why(), text) }
	}

	// The master has yet to come up: members may come, and none may go.
	l.awaitWorkers(3)
	wanted.value.Store(1)
	l.awaitHistory("a guard that can't be read", says("1 wanted, but it can't be told whether it is busy"))
	l.awaitHistory("a guard that has never had a value", func(e autoscale.Entry) bool {
		return len(e.Guards) == 2 && e.Guards[0].Name == "busy.http" && e.Guards[0].Never && !e.Guards[1].Never
	})
	output, err := exec.CommandContext(t.Context(), l.program().File, "autoscale", "explain", "-n", "0", "job/worker", "--endpoint", l.workspace.StateDir).CombinedOutput()
	l.must(err)
	if told := string(output); !strings.Contains(told, "warning: this guard has never had a value") || !strings.Contains(told, "observed: the metric has no algorithm") {
		t.Errorf("explain says\n%s", told)
	}

	applications.Store(1)
	l.awaitHistory("an application", says("1 wanted, but it is busy: activeapps.# of "+master.URL+"/json/ is 1"))
	wanted.value.Store(4)
	l.awaitWorkers(4) // also while it runs

	wanted.value.Store(1)
	needed.value.Store(2)
	applications.Store(0)
	l.awaitWorkers(2)
	needed.value.Store(5)
	l.awaitWorkers(5)
	needed.value.Store(broken)
	l.awaitHistory("a count that can't be told", says("1 wanted, but it can't be told how many are needed"))
	needed.value.Store(1)
	l.awaitWorkers(1)
	l.workspace.ExpectNoChange("after all of it")
	l.expectCounts(1, 3, 4, 2, 5, 1)
	if e := l.history(); *e[len(e)-1].Metrics[1].Value != 812 || e[len(e)-1].Metrics[1].Count != nil {
		t.Errorf("the observed metric is told as %+v", e[len(e)-1].Metrics[1])
	}
}
