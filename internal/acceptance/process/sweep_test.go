//go:build linux

package process_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
	"github.com/trainyard/terraform-provider-trainyard/internal/sweep"
)

// swept returns the sweep once it satisfies a condition.
func (l *lab) swept(what string, as func(reconcile.Sweep, sweep.Summary) bool) (found reconcile.Sweep) {
	l.Helper()
	acctest.Eventually(l, what, func() bool {
		var err error
		found, err = reconcile.Reconciler{Engine: l.engine()}.SweepRuns(l.Context(), "lr")
		l.must(err)
		return as(found, sweep.Summarise(found.Document, found.Spec, found.Runs))
	})
	return found
}

// checked turns a function into a check.
func checked(do func() error) resource.TestCheckFunc {
	return func(*terraform.State) error { return do() }
}

// attempts returns a check of how often each run was started.
func (l *lab) attempts(want map[string]int) resource.TestCheckFunc {
	return checked(func() error { return acceptance.Differences(want, l.attemptsOf()) })
}

// attemptsOf returns how often each run of the sweep was started.
func (l *lab) attemptsOf() map[string]int {
	found, err := reconcile.Reconciler{Engine: l.engine()}.SweepRuns(l.Context(), "lr")
	l.must(err)
	got := map[string]int{}
	for key := range found.Spec.Runs {
		got[key] = found.Runs[key].Attempts
	}
	return got
}

// While thirty runs are running, one is removed, one is changed, and one is added: the others continue undisturbed.
func TestAccSweepChangesWhileRunsAreOn(t *testing.T) {
	l := newLab(t)
	gate := filepath.Join(t.TempDir(), "gate")
	steps := map[string]string{}
	for i := range 30 {
		steps[fmt.Sprintf("run-%02d", i)] = "until:" + gate
	}
	config := func() string { return l.config(theCluster, acceptance.Runs(steps, "max_parallel = 31")) }
	on := func(running, succeeded int) func() {
		return func() {
			l.swept(fmt.Sprintf("%d runs to be on", running), func(_ reconcile.Sweep, s sweep.Summary) bool {
				return s.Counts[domain.RunRunning] == running && s.Counts[domain.RunSucceeded] == succeeded
			})
			acctest.Eventually(l, "their members to be there, and no others",
				func() bool { return len(l.instances()) == running })
		}
	}
	before := config()
	delete(steps, "run-07")
	steps["run-08"], steps["run-30"] = "exit:0", "exit:0"
	after := config()
	settled := func(running, succeeded int, changes ...string) resource.TestCheckFunc {
		return func(s *terraform.State) error {
			on(running, succeeded)()
			return l.changes(changes...)(s)
		}
	}
	var all []string
	for i := range 30 {
		all = append(all, fmt.Sprintf("+lr-run-%02d-0", i))
	}
	l.test(
		resource.TestStep{Config: before, Check: settled(30, 0, all...)},
		resource.TestStep{Config: after, Check: settled(28, 2, "-lr-run-07-0", "-lr-run-08-0")},
	)
}

// A run's log can be read while it runs and after it has ended; a destroy ends running ones.
func TestAccSweepLogs(t *testing.T) {
	l := newLab(t)
	config := l.config(theCluster,
		acceptance.Runs(map[string]string{"done": "exit:0", "on": "wait"}, "max_parallel = 2"), acceptance.ReadRuns, `
data "trainyard_logs" "done" {
  cluster    = trainyard_cluster.lab
  member     = data.trainyard_sweep.lr.runs["done"].member
}
data "trainyard_logs" "on" {
  cluster    = trainyard_cluster.lab
  member     = data.trainyard_sweep.lr.runs["on"].member
}`)
	started := func() {
		l.swept("one run to have ended, and one to be on", func(_ reconcile.Sweep, s sweep.Summary) bool {
			return s.Counts[domain.RunSucceeded] == 1 && s.Counts[domain.RunRunning] == 1
		})
		acctest.Eventually(l, "the run that is on to write",
			func() bool { return len(l.logs("lr-on-0")["lr-on-0"]) > 0 })
	}
	l.test(
		resource.TestStep{Config: l.config(theCluster,
			acceptance.Runs(map[string]string{"done": "exit:0", "on": "wait"}, "max_parallel = 2"))},
		resource.TestStep{
			PreConfig: started, Config: config,
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue("data.trainyard_logs.done", tfjsonpath.New("lines"),
					textList("done has exit:0")),
				statecheck.ExpectKnownValue("data.trainyard_logs.on", tfjsonpath.New("lines"), textList("on has wait")),
				statecheck.ExpectKnownValue(acceptance.TheRuns, acceptance.Attribute("runs", "on", "state"),
					knownvalue.StringExact("running")),
			},
		},
	)
}

// Invalid sweeps fail at plan time, with the numbers, and nothing is created.
func TestAccSweepInvalid(t *testing.T) {
	l := newGPULab(t, acceptance.A40())
	pool := acceptance.Pool("p", l.named(0)+"\nsharing = \"slots\"\nmemory_mib_per_slot = 1199")
	one := map[string]string{"a": "exit:0"}
	gpus := func(mib int) string {
		return fmt.Sprintf("gpus = { pool = %s.name, memory_mib = %d }\nadmission = { free_gpu_memory = true }",
			thePool, mib)
	}
	step := func(says, config string) resource.TestStep {
		return resource.TestStep{Config: config, ExpectError: acceptance.Says(says)}
	}
	l.test(
		step(`must be 1 or more, got 0`, l.config(theCluster, acceptance.Runs(one, "max_parallel = 0"))),
		step(`"Lr_1" can't be part of a member's name`,
			l.config(theCluster, acceptance.Runs(map[string]string{"Lr_1": "exit:0"}, ""))),
		step(`such as "lr-1"`, l.config(theCluster, acceptance.Runs(map[string]string{"Lr_1": "exit:0"}, ""))),
		step(`has 0 capture groups; it needs exactly one`,
			l.config(theCluster, acceptance.Runs(one, `objective = { pattern = "score" }`))),
		step(`map has no entry for key "STEP"`,
			l.config(theCluster, strings.Replace(acceptance.Runs(one, ""), "STEP = ", "STOP = ", 1))),
		step(`has no GPU pool "q"`, l.config(theCluster, acceptance.Runs(one, `gpus = { pool = "q" }`))),
		step(`asks for 39 slots of 1199 MiB on 1 GPU of pool "p" for its 46000 MiB`,
			l.config(theCluster, pool, acceptance.Runs(one, gpus(46_000)))),
		step(`requests 100000 CPUs, and the largest of the hosts it may use has`,
			l.config(theCluster, acceptance.Runs(one, "resources = { cpus = 100000 }"))),
	)
}

// cardMiB is the memory of an A40 without the 3 % that its driver reserves, and runMiB what a run needs in the
// paper behind the reference system rl-lab.
const (
	cardMiB = 44_685
	runMiB  = 1_199
)

// driveCard makes the first device show the memory in use on a card, see [acceptance.DriveCard].
func (l *gpuLab) driveCard(file string, foreign func() int64) {
	l.Helper()
	acceptance.DriveCard(l, file, foreign, func(used int64, processes []fakenvml.Process) {
		l.change(0, func(d *fakenvml.Device) { d.UsedMiB, d.Processes = used, processes })
	})
}

// Fifty runs are requested on a card that holds 37: by hand, all from the 38th on run out of memory. The sweep
// completes all fifty, including those that ran out of memory because the pool's slots promise more than there is.
func TestAccSweepOfACard(t *testing.T) {
	l := newGPULab(t, acceptance.A40())
	file := filepath.Join(t.TempDir(), "card")
	l.must(os.WriteFile(file, nil, 0o600))
	l.driveCard(file, func() int64 { return 0 })
	steps := map[string]string{}
	for i := range 50 {
		steps[fmt.Sprintf("run-%02d", i)] = fmt.Sprintf("card:%s,%d,%d", file, runMiB, cardMiB)
	}
	// Each run takes a while, since otherwise none would overlap.
	command := `command = [local.member, "{{ .Env.STEP }}", "print:has its memory", "until:{{ .Env.GATE }}"]`
	gate := filepath.Join(t.TempDir(), "gate")
	config := l.config(theCluster,
		// a slot is too small for a run
		acceptance.Pool("p", l.named(0)+"\nsharing = \"slots\"\nmemory_mib_per_slot = 900\nreserve_percent = 0"),
		strings.Replace(acceptance.Runs(steps, fmt.Sprintf(
			"gpus = { pool = %s.name, memory_mib = 900 }\nenv = { GATE = %q }\nretry = { out_of_memory = 100 }",
			thePool, gate,
		)),
			`command = [local.member, "print:{{ .Role }} has {{ .Env.STEP }}", "{{ .Env.STEP }}"]`, command, 1))
	l.test(resource.TestStep{
		Config: config,
		Check: checked(func() error {
			most := l.swept("the card to be full, and those too many to wait",
				func(_ reconcile.Sweep, s sweep.Summary) bool {
					return s.Counts[domain.RunRunning] == cardMiB/runMiB &&
						s.Counts[domain.RunQueued] == 50-cardMiB/runMiB
				})
			ranOut := 0
			for _, run := range most.Runs {
				ranOut += run.OutOfMemory
			}
			if ranOut == 0 {
				t.Error("no run ran out of memory: the test shows nothing")
			}
			l.must(os.WriteFile(gate, nil, 0o600))
			end := l.swept("all fifty to succeed", func(_ reconcile.Sweep, s sweep.Summary) bool { return s.Ended() })
			for key, run := range end.Runs {
				if run.State != domain.RunSucceeded || run.Failures > 0 {
					t.Errorf("%s is %+v", key, run)
				}
			}
			return nil
		}),
	})
}

// A run starts only if the driver reports enough free memory, whoever uses the rest, and as soon as it is free.
func TestAccSweepBesideOthers(t *testing.T) {
	l := newGPULab(t, acceptance.A40())
	file := filepath.Join(t.TempDir(), "card")
	l.must(os.WriteFile(file, nil, 0o600))
	var foreign atomic.Int64
	// leaves room for two and a half runs
	foreign.Store(acceptance.A40().MemoryMiB - acceptance.A40().ReservedMiB - 2*runMiB - runMiB/2)
	l.driveCard(file, foreign.Load)
	step := fmt.Sprintf("card:%s,%d,%d", file, runMiB, cardMiB)
	gate := filepath.Join(t.TempDir(), "gate")
	config := func(runs ...string) string {
		steps := map[string]string{}
		for _, run := range runs {
			steps[run] = step
		}
		return l.config(theCluster,
			acceptance.Pool("p",
				l.named(0)+"\nsharing = \"slots\"\nmemory_mib_per_slot = 1199\non_foreign_process = \"ignore\""),
			strings.Replace(acceptance.Runs(steps, fmt.Sprintf(
				"gpus = { pool = %s.name, memory_mib = %d }\nenv = { GATE = %q }\nadmission = { free_gpu_memory = true, reserve_percent = 0, settle = \"1s\" }",
				thePool, runMiB, gate)),
				`"{{ .Env.STEP }}"]`, `"{{ .Env.STEP }}", "until:{{ .Env.GATE }}"]`, 1), acceptance.ReadRuns)
	}
	l.test(resource.TestStep{
		Config: config("a", "b"),
		Check: checked(func() error {
			l.swept("as many to run as there is memory for", func(_ reconcile.Sweep, s sweep.Summary) bool {
				return s.Counts[domain.RunRunning] == 2
			})
			// On a busy machine they may allocate it long after they count as settled.
			acctest.Eventually(t, "what both take to be measured", func() bool {
				hosts, err := l.engine().GPUs(t.Context())
				l.must(err)
				return slices.ContainsFunc(hosts["local"].GPUs,
					func(gpu domain.GPU) bool { return gpu.MemoryFreeMiB != nil && *gpu.MemoryFreeMiB < runMiB })
			})
			return nil
		}),
	}, resource.TestStep{
		Config: config("a", "b", "c"),
		Check: checked(func() error {
			acctest.Eventually(t, "the third to wait for memory", func() bool {
				waits, err := reconcile.Reconciler{Engine: l.engine()}.SweepOutlook(t.Context())
				l.must(err)
				return strings.Contains(waits["lr"], "MiB of its memory are free, and a run needs 1199")
			})
			if found := l.swept("anything", func(reconcile.Sweep, sweep.Summary) bool {
				return true
			}); found.Runs["c"].Attempts != 0 {
				t.Errorf("the third run was started: %+v", found.Runs["c"])
			}
			foreign.Store(0)
			l.swept("the third to run once the card is free",
				func(_ reconcile.Sweep, s sweep.Summary) bool { return s.Counts[domain.RunRunning] == 3 })
			return os.WriteFile(gate, nil, 0o600)
		}),
	})
}

// The controller is killed repeatedly while runs are running and ending: none is lost, and none is started again after
// its success.
func TestAccSweepControllerKilled(t *testing.T) {
	l := newLab(t)
	steps := map[string]string{}
	for i := range 60 {
		steps[fmt.Sprintf("run-%02d", i)] = fmt.Sprintf("once:%s", filepath.Join(t.TempDir(), "tried"))
	}
	l.test(
		resource.TestStep{
			Config: l.config(theCluster, acceptance.Runs(steps, "max_parallel = 30\nretry = { max_attempts = 2 }")),
		},
		resource.TestStep{
			Config: l.config(theCluster, acceptance.Runs(steps, "max_parallel = 30\nretry = { max_attempts = 2 }"),
				acceptance.ReadRuns),
			PreConfig: func() {
				for range 4 { // the delay before its next start doubles each time
					l.killResident("controller")
				}
				l.swept("all runs to succeed", func(found reconcile.Sweep, s sweep.Summary) bool {
					return s.Counts[domain.RunSucceeded] == s.Total
				})
			},
			Check: checked(func() error {
				found := l.swept("anything", func(reconcile.Sweep, sweep.Summary) bool { return true })
				for key, run := range found.Runs {
					if run.Failures != 1 { // requeuing a lost run uses up no attempt
						t.Errorf("%s is %+v", key, run)
					}
				}
				return nil
			}),
		},
	)
}

// The agent, which measures the memory that runs wait for, and the supervisor, which starts them, are killed
// repeatedly: no run is lost, and each ends once per start.
func TestAccSweepAgentsKilled(t *testing.T) {
	l := newLab(t)
	steps := map[string]string{}
	for i := range 24 {
		steps[fmt.Sprintf("run-%02d", i)] = fmt.Sprintf("once:%s", filepath.Join(t.TempDir(), "tried"))
	}
	config := l.config(theCluster, acceptance.Runs(steps, `
  max_parallel = 4
  resources    = { memory_mib = 64 }
  admission    = { free_memory = true, settle = "0s" }
  retry        = { max_attempts = 2 }`))
	l.test(resource.TestStep{Config: config, Check: checked(func() error {
		for range 3 {
			l.killResident("agent")
			l.killSupervisor()
		}
		found := l.swept("all runs to end", func(_ reconcile.Sweep, s sweep.Summary) bool { return s.Ended() })
		for key, run := range found.Runs {
			if run.State != domain.RunSucceeded || run.Failures != 1 || run.Attempts != 2 {
				t.Errorf("%s is %+v", key, run)
			}
		}
		return nil
	})})
}

// A sweep's hook is called once for each run that has ended, even if the hook fails at first, not for an attempt that
// is tried again, and also for runs that are cancelled while they run or wait.
func TestAccSweepOnFinish(t *testing.T) {
	l := newLab(t)
	var mutex sync.Mutex
	reports, refused := map[string]int{}, false
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mutex.Lock()
		defer mutex.Unlock()
		var report struct {
			Cluster, Sweep, Run, State, Results string
			Attempt                             int
			ExitCode                            *int `json:"exit_code"`
		}
		l.must(json.NewDecoder(r.Body).Decode(&report))
		if !refused {
			refused = true
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		results := filepath.Join(l.files.WorkDir("lr-"+report.Run+"-0"), "out")
		if report.Attempt == 0 {
			results = ""
		}
		if report.Cluster != "lab" || report.Sweep != "lr" || (report.ExitCode == nil) != (report.State ==
			"cancelled") || report.Results != results {
			t.Errorf("the hook received %+v", report)
		}
		reports[fmt.Sprintf("%s %d %s", report.Run, report.Attempt, report.State)]++
	}))
	t.Cleanup(hook.Close)
	steps := map[string]string{"bad": "exit:3", "good": "exit:0", "on": "wait", "waits": "exit:0"}
	l.test(resource.TestStep{
		Config: l.config(theCluster, acceptance.Runs(steps, fmt.Sprintf(
			"max_parallel = 1\nretry = { max_attempts = 2 }\nresults = { path = \"out\" }\n"+
				"on_finish = { url = %q, timeout = \"5m\" }",
			hook.URL,
		))),
		Check: checked(func() error {
			l.swept("a run to be on, which keeps another one waiting",
				func(found reconcile.Sweep, _ sweep.Summary) bool {
					return found.Runs["on"].State == domain.RunRunning
				})
			if err := (reconcile.Reconciler{Engine: l.engine()}).RequestRuns(t.Context(), "lr", []string{"waits", "on"},
				domain.WishCancel, false); err != nil {
				return err
			}
			acctest.Eventually(t, "the hook to be called for all runs", func() bool {
				mutex.Lock()
				defer mutex.Unlock()
				return len(reports) >= len(steps)
			})
			return nil
		}),
	})
	// After the destroy, so that no call is missed.
	want := map[string]int{"bad 2 failed": 1, "good 1 succeeded": 1, "on 1 cancelled": 1, "waits 0 cancelled": 1}
	mutex.Lock()
	defer mutex.Unlock()
	if err := acceptance.Differences(want, reports); err != nil {
		t.Error(err)
	}
}

// killResident kills the controller or the agent once it runs, and waits until that is recorded.
func (l *lab) killResident(name string) {
	l.Helper()
	resident := "trainyard-" + name
	acctest.Eventually(l, "the "+name+" to be at work", func() bool {
		state, err := statedir.Read[statedir.State](l.files.Document(statedir.States, resident))
		return err == nil && state.State == domain.StateRunning
	})
	l.kill(resident)
}
