//go:build linux

package process_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/supervisor"
	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// followLab is a lab in which a policy scales the role "worker" of the group "job". Terraform and the provider run as
// separate processes, beside a controller and a supervisor that may be killed.
type followLab struct {
	*lab
	workspace *acctest.Workspace
}

func newFollowLab(t *testing.T) *followLab {
	t.Helper()
	acceptance.Test(t)
	return newFollowLabOf(t, "")
}

// newFollowLabOf returns a lab with this provider program; empty is the usual one. The decisions are logged at the end.
func newFollowLabOf(t *testing.T, provider string) *followLab {
	t.Helper()
	l := &lab{T: t, provider: provider, port: freePorts(t)}
	w := acctest.NewWorkspace(t, l.program().File)
	l.files = statedir.Dir{Root: w.StateDir, Cluster: "lab"}
	t.Cleanup(func() { acceptance.Explain(t, l.program().File, "job/worker", "--endpoint", w.StateDir) })
	return &followLab{l, w}
}

// apply applies a configuration of these parts, and expects an empty plan afterwards.
func (l *followLab) apply(parts ...string) {
	l.Helper()
	l.configure(parts...)
	l.workspace.Must("apply", "-auto-approve")
	l.workspace.ExpectNoChange("after an apply")
}

// configure writes a configuration of these parts.
func (l *followLab) configure(parts ...string) {
	l.Helper()
	l.workspace.Write("main.tf",
		"terraform {\n  required_providers {\n    trainyard = { source = \"trainyard/trainyard\" }\n  }\n}\n"+
			l.config(parts...))
}

// follows returns the configuration of a policy with these attributes, which decides every second for the workers of
// the group "job".
func follows(attributes string) string { return acceptance.Follows("job", attributes) }

// read returns the current state of the group.
func (l *followLab) read() reconcile.Group {
	l.Helper()
	group, err := reconcile.Reconciler{Engine: l.engine()}.Read(l.Context(), "job")
	l.must(err)
	return group
}

// await waits until the group satisfies a condition.
func (l *followLab) await(what string, holds func(group reconcile.Group) bool) {
	l.Helper()
	ctx, stop := context.WithCancel(acctest.Bounded(l)) // also ends the watch
	defer stop()
	events, err := l.engine().Watch(ctx)
	l.must(err)
	for group := l.read(); !holds(group); group = l.read() {
		if err := engine.Await(ctx, events, time.Time{}); err != nil {
			l.Fatalf("waited for %s in vain; the counts are %v, and the members %+v", what, group.Document.Counts,
				group.Observed)
		}
	}
}

// awaitAtLeast waits for a worker count of at least this, awaitAtMost for one of at most this: an intermediate count
// may pass unseen.
func (l *followLab) awaitAtLeast(count int) {
	l.Helper()
	l.await(fmt.Sprintf("a count of %d or more", count),
		func(group reconcile.Group) bool { return group.Document.Counts["worker"] >= count })
}

func (l *followLab) awaitAtMost(count int) {
	l.Helper()
	l.await(fmt.Sprintf("a count of %d or less", count),
		func(group reconcile.Group) bool { return group.Document.Counts["worker"] <= count })
}

// awaitWorkers waits until exactly this many workers run.
func (l *followLab) awaitWorkers(count int) {
	l.Helper()
	l.await(fmt.Sprintf("%d workers to run", count), func(group reconcile.Group) bool {
		return group.Document.Counts["worker"] == count && !group.Document.Scaling && len(group.Observed) == count &&
			!slices.ContainsFunc(group.Observed, func(o domain.Observed) bool { return o.State != domain.StateRunning })
	})
}

// awaitMeasured waits until all workers have run, and have been measured, for this long. Their CPU usage then counts
// them as ready.
func (l *followLab) awaitMeasured(window time.Duration) {
	l.Helper()
	acctest.Eventually(l, "the workers to be measured", func() bool {
		used, err := l.engine().Usage(l.Context(), window)
		l.must(err)
		return !slices.ContainsFunc(l.read().Observed, func(o domain.Observed) bool {
			return o.State != domain.StateRunning || used.Members[o.Name].SampledAt.Before(o.StartedAt.Add(window))
		})
	})
}

// killSupervisor kills the supervisor, which the controller restarts.
func (l *lab) killSupervisor() {
	l.Helper()
	acctest.Eventually(l, "the controller, which replaces it", func() bool {
		state := l.state("trainyard-controller")
		return state.State == domain.StateRunning && l.command(state) != 0
	})
	acctest.Eventually(l, "the supervisor", func() bool {
		holder, atWork, err := supervisor.AtWork(l.files)
		l.must(err)
		return atWork && syscall.Kill(holder.Process, syscall.SIGKILL) == nil
	})
}

// history returns the policy's recorded decisions so far.
func (l *followLab) history() []autoscale.Entry {
	l.Helper()
	return acceptance.Recorded(l.T, l.engine())
}

// awaitHistory waits until the history has a matching entry.
func (l *followLab) awaitHistory(what string, is func(e autoscale.Entry) bool) {
	l.Helper()
	acctest.Eventually(l, what+" in the history", func() bool { return slices.ContainsFunc(l.history(), is) })
}

// expectCounts fails unless the history consists of exactly these counts in this order, with each change recorded once.
// The last change is only recorded after it was carried out.
func (l *followLab) expectCounts(counts ...int) {
	l.Helper()
	acctest.Eventually(l, "all changes in the history", func() bool {
		changes := 0
		for _, e := range l.history() {
			if e.Scaled() {
				changes++
			}
		}
		return changes >= len(counts)-1
	})
	expectCounts(l.T, l.history(), counts...)
}

// expectCounts fails unless a history consists of exactly these counts in this order, with each change recorded once.
func expectCounts(t *testing.T, entries []autoscale.Entry, counts ...int) {
	t.Helper()
	var got, want []string
	for _, e := range entries {
		if e.Scaled() {
			got = append(got, fmt.Sprintf("%d→%d", e.From, e.To))
		}
	}
	for i := range counts[1:] {
		want = append(want, fmt.Sprintf("%d→%d", counts[i], counts[i+1]))
	}
	if !slices.Equal(got, want) {
		t.Errorf("the history has %q, want %q", got, want)
	}
}

// dial is a metric that a test sets: an address that serves a number.
type dial struct {
	*httptest.Server
	value, asked atomic.Int64
}

// broken makes a dial answer with an error.
const broken = -1

func newDial(t *testing.T, value int) *dial {
	t.Helper()
	d := &dial{}
	d.value.Store(int64(value))
	d.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		d.asked.Add(1)
		value := d.value.Load()
		if value == broken {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		_, _ = fmt.Fprintf(w, "{\"length\": %d}", value) // the client may be gone
	}))
	t.Cleanup(d.Close)
	return d
}

// metrics returns the policy attribute that makes the count equal to the dial's value.
func (d *dial) metrics() string {
	return fmt.Sprintf(`metrics = { dial = { source = { queue = { http = { url = %q, path = "length" } } }, algorithm = { queue = { per_member = 1 } } } }
`, d.URL)
}

// awaitAsked waits until the dial has been read a few more times, so that earlier readings have led to decisions.
func (d *dial) awaitAsked(t *testing.T) {
	t.Helper()
	until := d.asked.Load() + 3
	acctest.Eventually(t, "the policy to decide some times", func() bool { return d.asked.Load() >= until })
}
