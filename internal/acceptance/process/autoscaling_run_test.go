//go:build linux

package process_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"
	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	prom "github.com/trainyard/terraform-provider-trainyard/internal/prometheus"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// The role follows the memory that its members hold, up and down again, while the controller and the supervisor are
// killed: each change is made once, and recorded once.
func TestAccScalingFollowsLoad(t *testing.T) {
	l := newFollowLab(t)
	load := acceptance.NewLoad(t)
	job := fmt.Sprintf("command = [local.member, %q]\n  roles = { worker = { on_scale = \"none\" } }",
		"hold:"+load.File)
	l.apply(theCluster, group("job", job), follows(`min = 1
  max       = 4
  metrics   = { memory = { source = { agent = { measure = "memory_mib" } }, window = "3s", algorithm = { target = { value = 40 } } } }
  scale_out = { max_step = 1 }
  scale_in  = { stabilisation_window = "5s", max_step = 1 }`))
	l.awaitMeasured(3 * time.Second)

	up := load.Set(100)
	l.awaitAtLeast(2)
	l.kill("trainyard-controller")
	l.awaitAtLeast(3)
	l.killSupervisor()
	l.awaitWorkers(4)
	t.Logf("4 workers run %s after the load rose", time.Since(up).Round(time.Millisecond))
	l.workspace.ExpectNoChange("under load")

	down := load.Set(0)
	l.awaitAtMost(3)
	l.kill("trainyard-controller")
	l.awaitAtMost(2)
	l.killSupervisor()
	l.awaitWorkers(1)
	t.Logf("1 worker runs %s after the load fell", time.Since(down).Round(time.Millisecond))
	l.workspace.ExpectNoChange("without load")

	l.awaitHistory("the last change", acceptance.Outcomes(autoscale.OutcomeDone, 2, 1, ""))
	l.expectCounts(1, 2, 3, 4, 3, 2, 1)
	var entries []autoscale.Entry
	for _, e := range l.history() {
		if e.Scaled() {
			entries = append(entries, e)
		}
	}
	t.Logf("from the load to the decision: %s up, %s down", entries[0].At.Sub(up).Round(time.Millisecond),
		entries[3].At.Sub(down).Round(time.Millisecond))
}

// quiet is the group "job" of workers that keep running when others are added or removed.
var quiet = group("job", waiting(`on_scale = "none"`))

// An apply to a policy takes effect at once, not with the next decision: new bounds, a pause, and its removal.
func TestAccScalingObeysApplies(t *testing.T) {
	l := newFollowLab(t)
	d := newDial(t, 1)
	// With an interval of 1h, decisions are only made after changes.
	bounds := func(least, most int) string {
		return strings.Replace(follows(fmt.Sprintf("min = %d\n  max = %d\n  %s", least, most, d.metrics())), `"1s"`,
			`"1h"`, 1)
	}
	l.apply(theCluster, quiet, bounds(1, 4))
	l.awaitWorkers(1)
	l.apply(theCluster, quiet, bounds(3, 4))
	l.awaitWorkers(3)
	l.workspace.ExpectNoChange("with another count")
	l.apply(theCluster, quiet, bounds(1, 2))
	l.awaitWorkers(2)

	// A held count stays as it is, and the history says what would have been done.
	holding := func(attributes string) string {
		return follows("min = 1\n  max = 5\n  on_destroy = \"restore\"\n  " + d.metrics() + attributes)
	}
	for _, hold := range []struct {
		attribute string
		dial      int64
	}{{`paused = "all"`, 4}, {`paused = "out"`, 5}, {`dry_run = true`, 4}} {
		d.value.Store(hold.dial)
		l.apply(theCluster, quiet, holding(hold.attribute))
		d.awaitAsked(t)
		l.awaitWorkers(2)
	}
	l.apply(theCluster, quiet, holding(""))
	l.awaitWorkers(4)
	l.awaitHistory("the pause",
		acceptance.Outcomes(autoscale.OutcomeUnchanged, 2, 2, "4 wanted, but the policy is paused"))
	l.awaitHistory("the pause of scaling out",
		acceptance.Outcomes(autoscale.OutcomeUnchanged, 2, 2, "5 wanted, but scaling out is paused"))
	l.awaitHistory("the dry run", acceptance.Outcomes(autoscale.OutcomeDryRun, 2, 4, "a queue of 4"))
	l.expectCounts(1, 3, 2, 4)

	// Removing the policy leaves the count that on_destroy says.
	l.apply(theCluster, quiet)
	l.awaitWorkers(1)
	for rule, left := range map[string]int{"min": 2, "keep": 4} {
		l.apply(theCluster, quiet, follows("min = 2\n  max = 5\n  on_destroy = \""+rule+"\"\n  "+d.metrics()))
		l.awaitWorkers(4)
		l.apply(theCluster, quiet)
		l.awaitWorkers(left)
	}
}

// An apply during a scaling, and a scaling during an apply, both end with the policy's count and the configuration's
// members.
func TestAccScalingMeetsApply(t *testing.T) {
	l := newFollowLab(t)
	d := newDial(t, 2)
	// Ending a member takes its whole grace period.
	parts := func(rate int) []string {
		return []string{theCluster,
			group("job", fmt.Sprintf(`command = [local.member, "environment:RATE", "ignore", "wait"]
  env   = { RATE = "%d" }
  roles = { worker = { grace_period = "1s" } }`, rate)),
			follows("min = 1\n  max = 6\n  scale_in = { stabilisation_window = \"0s\" }\n  " + d.metrics())}
	}
	expect := func(rate, count int) {
		t.Helper()
		l.awaitWorkers(count)
		l.workspace.ExpectNoChange("with both done")
		// A member prints a moment after it starts running.
		acctest.Eventually(t, fmt.Sprintf("all members to work at a rate of %d", rate), func() bool {
			return !slices.ContainsFunc(l.read().Observed, func(o domain.Observed) bool {
				lines := l.logs(o.Name)[o.Name]
				return len(lines) == 0 || lines[len(lines)-1] != strconv.Itoa(rate)
			})
		})
	}
	l.apply(parts(1)...)
	expect(1, 2)

	d.value.Store(4)
	l.awaitAtLeast(4)
	if l.read().Document.Scaling {
		t.Log("an apply begins in the middle of a scaling")
	}
	l.apply(parts(2)...)
	expect(2, 4)

	l.configure(parts(3)...)
	wait := l.workspace.Start("apply", "-auto-approve")
	// which may be over by now
	l.await("an apply", func(group reconcile.Group) bool { return group.Document.Spec.Env["RATE"] == "3" })
	d.value.Store(1)
	d.awaitAsked(t)
	wait()
	expect(3, 1)
	l.awaitHistory("the last change", acceptance.Outcomes(autoscale.OutcomeDone, 4, 1, ""))
	l.expectCounts(1, 2, 4, 1)
}

// Members consume a queue: they are added for it, removed when it is empty, down to none, and added again. No item is
// lost or processed twice.
func TestAccScalingWorksQueueOff(t *testing.T) {
	l := newFollowLab(t)
	redis := acctest.StartRedis(t)
	list := "jobs"
	push := func(first, count int) {
		items := make([]string, count)
		for i := range items {
			items[i] = strconv.Itoa(first + i)
		}
		acctest.AskRedis(t, redis, append([]string{"RPUSH", list}, items...)...)
	}
	l.apply(theCluster, group("job", fmt.Sprintf(
		"command = [local.member, %q]\n  roles = { worker = { on_scale = \"none\" } }", "work:"+redis+"/"+list,
	)), follows(fmt.Sprintf(`min = 0
  max = 4
  scale_in = { stabilisation_window = "0s" }
  metrics = { jobs = { source = { queue = { redis = { address = %q, key = %q } } }, algorithm = { queue = { per_member = 100, cool_down = "2s" } } } }`, redis,
		list)))
	l.awaitWorkers(0)
	l.workspace.ExpectNoChange("without members")

	const first, second = 500, 10
	push(0, first)
	worked := func(items int) {
		t.Helper()
		acctest.Eventually(t, "the queue to be worked off", func() bool {
			return acctest.AskRedis(t, redis, "LLEN", list+"-done") == strconv.Itoa(items)
		})
		l.awaitWorkers(0)
	}
	worked(first)
	push(first, second)
	worked(first + second)
	done := strings.Fields(acctest.AskRedis(t, redis, "LRANGE", list+"-done", "0", "-1"))
	slices.SortFunc(done, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
	if left := acctest.AskRedis(t, redis, "LLEN", list); left != "0" || len(done) != first+second ||
		len(slices.Compact(done)) != len(done) {
		t.Errorf("%s items are left, and %d done: %q", left, len(done), done)
	}
	l.awaitHistory("the many members for many items",
		acceptance.Outcomes(autoscale.OutcomeDone, 0, 4, "a queue of 500"))
	l.awaitHistory("the last member's end",
		acceptance.Outcomes(autoscale.OutcomeDone, 1, 0, "the queue has been empty for"))
	l.workspace.ExpectNoChange("with all work done")
}

// Two policies want more GPUs than their pool has: they get what there is and say so, no GPU has two owners, and one
// that is released by one goes to the other.
func TestAccScalingSharesGPUs(t *testing.T) {
	devices := make([]fakenvml.Device, 4)
	for i := range devices {
		devices[i] = acceptance.A40()
		devices[i].UUID = fmt.Sprintf("GPU-a40a40a4-0000-4000-8000-%012d", i)
		devices[i].PCIBusID = fmt.Sprintf("00000000:3%d:00.0", i)
	}
	acceptance.Test(t)
	nvml := fakenvml.New(t)
	nvml.Set(devices...)
	l := newFollowLabOf(t, acctest.ProviderWithGPUs(t, nvml))
	gpus := &gpuLab{lab: l.lab, nvml: nvml, devices: devices}
	first, second := newDial(t, 1), newDial(t, 1)
	policy := func(name string, d *dial) string {
		return acceptance.Follows(name,
			"min = 1\n  max = 5\n  scale_in = { stabilisation_window = \"0s\" }\n  "+d.metrics())
	}
	trained := waiting(`on_scale = "none", gpus = { pool = trainyard_gpu_pool.p.name, count = 1 }`)
	l.apply(theCluster, acceptance.Pool("p", gpus.named(0, 1, 2, 3)), group("job", trained), group("other", trained),
		policy("job", first), policy("other", second))
	owned := func() (count map[string]int, owners map[string]string) {
		t.Helper()
		count, owners = map[string]int{}, map[string]string{}
		groups, err := engine.List[domain.GroupDocument](t.Context(), l.engine())
		l.must(err)
		for name, document := range groups {
			count[name] = document.Counts["worker"]
			for member, assigned := range document.Assignments {
				for _, uuid := range assigned.GPUs.UUIDs() {
					if owners[uuid] != "" {
						t.Errorf("%s is that of %s, and of %s", uuid, owners[uuid], member)
					}
					owners[uuid] = member
				}
			}
		}
		return count, owners
	}
	await := func(what string, holds func(count map[string]int) bool) {
		t.Helper()
		acctest.Eventually(t, what, func() bool {
			count, owners := owned()
			return len(owners) == 4 && holds(count)
		})
	}
	first.value.Store(5)
	second.value.Store(5)
	await("all GPUs to be used", func(count map[string]int) bool { return count["job"]+count["other"] == 4 })
	l.workspace.ExpectNoChange("with all GPUs used")
	first.value.Store(1)
	await("the other group to have what the first one gave back",
		func(count map[string]int) bool { return count["other"] == 3 })
	l.awaitHistory("the pool's end", func(e autoscale.Entry) bool {
		return e.Outcome == autoscale.OutcomeHeld && e.To == 5
	})
	l.workspace.ExpectNoChange("with other owners")
}

// hook is a user's program whose answer the test sets.
type hook struct {
	*httptest.Server
	answer atomic.Value
	mu     sync.Mutex
	asked  []string
	// before is called before each answer.
	before func()
}

func newHook(t *testing.T, answer string) *hook {
	t.Helper()
	h := &hook{before: func() {}}
	h.answer.Store(answer)
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		question, _ := io.ReadAll(r.Body) // a truncated body is not JSON
		h.mu.Lock()
		defer h.mu.Unlock()
		h.before()
		h.asked = append(h.asked, string(question))
		answer, _ := h.answer.Load().(string)
		if answer == "" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		if strings.Contains(answer, "action") { // only once
			h.answer.Store(`{"action": "none"}`)
		}
		_, _ = io.WriteString(w, answer) // the client may be gone
	}))
	t.Cleanup(h.Close)
	return h
}

// setBefore sets a function to call before each further answer.
func (h *hook) setBefore(before func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.before = before
}

// questions returns the requests so far.
func (h *hook) questions() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.asked)
}

// awaitAsked waits for a few more requests.
func (h *hook) awaitAsked(t *testing.T) {
	t.Helper()
	until := len(h.questions()) + 3
	acctest.Eventually(t, "the hook to be asked some times", func() bool { return len(h.questions()) >= until })
}

// A user's program decides, a query says whether members work, and a hook hears of those to be removed. A failure of
// any changes nothing, and keeps the members.
func TestAccScalingAsksUsersPrograms(t *testing.T) {
	l := newFollowLab(t)
	var works atomic.Bool
	prometheus := acctest.StartPrometheus(t, acctest.Exporter{Instance: "master", Metrics: func(float64) string {
		if works.Load() {
			return "applications 1"
		}
		return "applications 0"
	}})
	decider, drain := newHook(t, `{"count": 3}`), newHook(t, "{}")
	l.apply(theCluster, quiet, follows(fmt.Sprintf(`min = 1
  max      = 6
  metrics  = { learnt = { algorithm = { external = { url = %q, timeout = "1m" } } } }
  scale_in = { stabilisation_window = "0s" }
  guards   = { busy = { prometheus = { url = %q, query = "sum(applications)" } } }
  hooks    = { before_removal = { url = %q, timeout = "3s" } }`, decider.URL, prometheus, drain.URL)))
	l.awaitWorkers(3)
	var question struct {
		Group, Role     string
		Count, Min, Max int
	}
	l.must(json.Unmarshal([]byte(decider.questions()[0]), &question))
	if question.Group != "job" || question.Role != "worker" || question.Count != 1 || question.Min != 1 ||
		question.Max != 6 {
		t.Errorf("it was asked %s", decider.questions()[0])
	}
	decider.answer.Store(`{"action": "up"}`)
	l.awaitWorkers(4)
	decider.answer.Store("") // it fails
	decider.awaitAsked(t)
	l.awaitWorkers(4)

	works.Store(true)
	acctest.Eventually(t, "Prometheus to know that they work", func() bool {
		value, _, err := prom.Settings{URL: prometheus, Timeout: time.Minute}.Value(t.Context(), "sum(applications)", 0)
		l.must(err)
		return value == 1
	})
	decider.answer.Store(`{"count": 3}`)
	decider.awaitAsked(t)
	l.awaitWorkers(4)
	if asked := drain.questions(); len(asked) > 0 {
		t.Errorf("members that work were to be drained: %q", asked)
	}
	drain.answer.Store("")
	works.Store(false)
	drain.awaitAsked(t)
	l.awaitWorkers(4)
	drain.setBefore(func() {
		if alive := l.alive(4); alive != 4 {
			t.Errorf("%d members ran when the hook heard of those that are to go, want 4", alive)
		}
	})
	drain.answer.Store("{}")
	l.awaitWorkers(3)
	last := drain.questions()
	if want := `"hook":"before_removal","cluster":"lab","group":"job","role":"worker","from":4,"to":3,"members":["job-worker-3"]}`; !strings.HasSuffix(
		last[len(last)-1], want,
	) {
		t.Errorf("the hook heard %s, want %s", last[len(last)-1], want)
	}
	l.awaitHistory("the last change", acceptance.Outcomes(autoscale.OutcomeDone, 4, 3, "it answered 3"))
	l.awaitHistory("the failure of the program", acceptance.Outcomes(autoscale.OutcomeUnchanged, 4, 4, "HTTP 503"))
	l.awaitHistory("the application",
		acceptance.Outcomes(autoscale.OutcomeUnchanged, 4, 4, "the role is busy: sum(applications) is 1"))
	l.awaitHistory("the failure of the hook",
		acceptance.Outcomes(autoscale.OutcomeHeld, 4, 3, "hook before_removal failed"))
	l.expectCounts(1, 3, 4, 3)
}
