//go:build linux

package process_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// Spark's own JSON endpoint keeps members while an application runs, and while it can't be read; another guard says how
// many members are needed; a metric without an algorithm is only observed. Guards that have never had a value cause
// warnings. Killing the controller while a guard holds members changes nothing.
func TestAccScalingGuards(t *testing.T) {
	l := newFollowLab(t)
	wanted, needed, seen := newDial(t, 3), newDial(t, 1), newDial(t, 812)
	var applications atomic.Int64 // negative while the master is down
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
		_, _ = fmt.Fprintf(w, `{"url": "spark://master:7077", "activeapps": [%s], "status": "ALIVE"}`,
			strings.Join(apps, ", ")) // the client may be gone
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

	// The master is not up yet: members may be added, but not removed.
	l.awaitWorkers(3)
	wanted.value.Store(1)
	acctest.Eventually(t, "the guard to be asked in vain for a while", func() bool {
		silent, err := engine.List[domain.SilentGuardsDocument](t.Context(), l.engine())
		l.must(err)
		return len(silent["job/worker"].Guards) == 1
	})
	program := func(arguments ...string) string {
		output, err := exec.CommandContext(t.Context(), l.program().File,
			append(arguments, "--endpoint", l.workspace.StateDir)...).CombinedOutput()
		l.must(err)
		return string(output)
	}
	if output := program("top", "--once"); !strings.Contains(output, "autoscaled, no value for busy.http") {
		t.Errorf("top shows\n%s", output)
	}
	plan := func(options ...string) string {
		output := l.workspace.Must(append([]string{"plan"}, options...)...)
		return strings.Join(strings.Fields(strings.ReplaceAll(output, "│", "")), " ")
	}
	const warning = `Warning: Guard of autoscaling policy "job/worker" has never had a value`
	// With -detailed-exitcode, a plan with changes fails; a refresh also reports the count that the policy has set.
	for _, options := range [][]string{
		{"-detailed-exitcode"},
		{"-detailed-exitcode", "-refresh=false"},
		{"-refresh-only"},
	} {
		output := plan(options...)
		for _, says := range []string{warning, "guards.busy.http: queried since", "HTTP 503"} {
			if !strings.Contains(output, says) {
				t.Errorf("a plan %v does not say %q: %s", options, says, output)
			}
		}
		if strings.Contains(output, "similar warning") {
			t.Errorf("a plan %v warns twice: %s", options, output)
		}
	}

	applications.Store(1)
	wanted.awaitAsked(t)
	wanted.value.Store(4)
	l.awaitWorkers(4) // scaling out works while it runs
	l.awaitHistory("a guard that can't be read", says("1 wanted, but it is unknown whether the role is busy"))
	l.awaitHistory("a guard that has never had a value", func(e autoscale.Entry) bool {
		return len(e.Guards) == 2 && e.Guards[0].Name == "busy.http" && e.Guards[0].Never && !e.Guards[1].Never
	})
	l.awaitHistory("an application", says("1 wanted, but the role is busy: activeapps.# of "+master.URL+"/json/ is 1"))
	if output := program("autoscale", "explain", "-n", "0", "job/worker"); !strings.Contains(output,
		"warning: this guard has never had a value") ||
		!strings.Contains(output, "observed: the metric has no algorithm") {
		t.Errorf("explain says\n%s", output)
	}

	// The next controller is held by the guard as the killed one was, until the guard releases members.
	wanted.value.Store(1)
	needed.value.Store(2)
	before := l.read().Observed
	wanted.awaitAsked(t)
	l.kill("trainyard-controller")
	wanted.awaitAsked(t)
	if group := l.read(); group.Document.Counts["worker"] != 4 ||
		!slices.EqualFunc(group.Observed, before, func(a, b domain.Observed) bool {
			return a.Name == b.Name && a.State == b.State && a.StartedAt.Equal(*b.StartedAt)
		}) {
		t.Errorf("while the guard holds them, the count is %v, and the members are %+v; they were %+v",
			group.Document.Counts, group.Observed, before)
	}
	applications.Store(0)
	l.awaitWorkers(2)
	needed.value.Store(5)
	l.awaitWorkers(5)
	needed.value.Store(broken)
	wanted.awaitAsked(t)
	needed.value.Store(1)
	l.awaitWorkers(1)
	l.awaitHistory("an unknown count", says("1 wanted, but it is unknown how many are needed"))
	for _, options := range [][]string{{"-detailed-exitcode"}, {"-refresh-only"}} {
		if output := plan(options...); strings.Contains(output, warning) {
			t.Errorf("after all of it, a plan %v says %s", options, output)
		}
	}
	l.expectCounts(1, 3, 4, 2, 5, 1)
	if e := l.history(); *e[len(e)-1].Metrics[1].Value != 812 || e[len(e)-1].Metrics[1].Count != nil {
		t.Errorf("the observed metric is recorded as %+v", e[len(e)-1].Metrics[1])
	}
}
