// Package enginetest is the conformance suite that every engine must pass, run against the real thing.
package enginetest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/storetest"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// Harness is what the suite needs from an engine's own tests.
type Harness struct {
	// Open returns the engine of a fresh cluster of this name that is not stored yet, and cleans up at the end of the
	// test. Clusters may share their hosts.
	Open func(t *testing.T, cluster string) engine.Engine
	// Store is the harness for the suite of stores.
	Store storetest.Harness
	// Cluster returns the specification of a cluster of this name.
	Cluster func(name string) domain.Cluster
	// Brief skips dying callers and races between callers, which are covered by another harness of the same engine.
	Brief bool
	// EveryDeath has callers die after every change, not only after every third as on engines where that takes minutes.
	EveryDeath bool
	// Host is the name of a host of such a cluster.
	Host string
	// StartsWithin is the time within which a few members start to run.
	StartsWithin time.Duration
	// Template returns the template of a member that runs these steps, see the command "member" beside this package.
	Template func(steps ...string) domain.Template
	// Scratch returns a path for the step "once", at which members of the host can create a file.
	Scratch func(t *testing.T) string
	// Foreign creates something beside the members of a group that is not Trainyard's, and returns a function that
	// fails if it was touched.
	Foreign func(t *testing.T, e engine.Engine, group string) (untouched func() error)
	// Alive returns how many processes of a group's members are alive, wherever they come from.
	Alive func(t *testing.T, e engine.Engine, group string) int
	// Show describes a group's members, for diagnosing a failed test; nil if there is nothing more to show.
	Show func(t *testing.T, e engine.Engine, group string) string
	// GPUs is how the suite drives the hosts' GPUs.
	GPUs GPUs
	// Traffic returns the name or address at which members reach one of the host; nil if their network traffic can't be
	// measured.
	Traffic func(member string) string

	// lab and group are the names of the cluster and of the group under test.
	lab, group string
	// standing is the cluster, if the test shares it with others.
	standing engine.Engine
}

// Run runs the suite. Tests have a group each in one cluster, and clusters of their own if they change the cluster
// itself.
func Run(t *testing.T, h Harness) {
	h.lab = "lab"
	standing := h.cluster(t)
	number := 0
	run := func(tests map[string]func(*testing.T, Harness), in func(Harness) Harness) {
		for name, test := range tests {
			number++
			own := in(h)
			own.group = fmt.Sprint("job", number)
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, own)
			})
		}
	}
	run(map[string]func(*testing.T, Harness){
		"store":               testStore,
		"locks":               testLocks,
		"create and observe":  testCreate,
		"foreign things":      testForeign,
		"measures":            testMeasures,
		"destroy nothing":     testDestroyNothing,
		"delete with members": testDeleteWithMembers,
		"residents":           testResidents,
		"files":               testFiles,
	}, func(h Harness) Harness {
		h.lab = fmt.Sprint("lab", number)
		return h
	})
	shared := func(h Harness) Harness {
		h.standing = standing
		return h
	}
	run(map[string]func(*testing.T, Harness){
		"nothing before start": testStaged,
		"repeat a start":       testRepeat,
		"change one member":    testChange,
		"grow and shrink":      testGrowShrink,
		"complete":             testComplete,
		"fail":                 testFail,
		"restart by rule":      testRestart,
		"stop":                 testStop,
		"stop a paused member": testStopPaused,
		"remove a whole tree":  testRemoveTree,
		"logs":                 testLogs,
		"follow a log":         testFollow,
		"events":               testEvents,
		"the controller":       testController,

		"interchangeable members":          testInterchangeable,
		"interchangeable members that end": testInterchangeableEnd,
		"update in turns":                  testUpdateInTurns,
		"scaling":                          testScaling,
		"sweeps":                           testSweep,
	}, shared)
	if h.Brief {
		return
	}
	run(map[string]func(*testing.T, Harness){"files after death": testFilesAfterDeath}, func(h Harness) Harness {
		h.lab = fmt.Sprint("lab", number)
		return h
	})
	run(map[string]func(*testing.T, Harness){
		"apply after each death": testApplyAfterDeath,
		"revert after death":     testRevertAfterDeath,
		"destroy after death":    testDestroyAfterDeath,

		"interchangeable members after death": testInterchangeableAfterDeath,
	}, shared)
}

// cluster returns the standing cluster, or forms and stores one, and starts its controller.
func (h Harness) cluster(t *testing.T) engine.Engine {
	t.Helper()
	if h.standing != nil {
		return h.standing
	}
	e := h.Open(t, h.lab)
	h.form(t, e)
	must(t, e.StartController(acctest.Bounded(t)))
	return e
}

// form forms and stores a cluster, and returns it.
func (h Harness) form(t *testing.T, e engine.Engine) domain.Cluster {
	t.Helper()
	spec, problems, err := e.Complete(t.Context(), h.Cluster(h.lab))
	must(t, err)
	must(t, problems.Err())
	spec, err = e.Form(acctest.Bounded(t), spec)
	must(t, err)
	_, err = engine.Put(t.Context(), e, domain.ClusterDocument{Spec: spec})
	must(t, err)
	return spec
}

// memberName returns the name of a worker of the group.
func (h Harness) memberName(index int) string { return domain.MemberName(h.group, "worker", index) }

// member returns the specification of a member of the group h.group that runs these steps.
func (h Harness) member(index int, steps ...string) domain.MemberSpec {
	runs := h.Template(steps...)
	return domain.MemberSpec{
		Cluster: h.lab, Group: h.group, Role: "worker", Index: index, Name: h.memberName(index),
		Host: h.Host, Address: fmt.Sprintf("127.0.0.1:%d", 9000+index), Hash: "first", Run: 1,
		Image: runs.Image, Command: runs.Command, Args: runs.Args, Mounts: runs.Mounts,
		Restart:     domain.Role{}.RestartRule(),
		GracePeriod: domain.DefaultGracePeriod,
	}
}

// start stages members and starts them.
func start(t *testing.T, e engine.Engine, specs ...domain.MemberSpec) {
	t.Helper()
	must(t, e.Stage(t.Context(), specs))
	run := 0
	for _, spec := range specs {
		run = max(run, spec.Run)
	}
	must(t, e.Start(acctest.Bounded(t), specs[0].Group, run))
}

// await returns the observed members of the group h.group once they are as they should be. An engine that has been too
// busy to answer is asked again.
func (h Harness) await(
	t *testing.T, e engine.Engine, what string, as func([]domain.Observed) bool,
) (observed []domain.Observed) {
	t.Helper()
	bounded := acctest.Bounded(t)
	defer func() {
		if t.Failed() {
			logMembers(t, observed)
			h.show(t, e)
		}
	}()
	look := func() error {
		ctx, stop := context.WithCancel(bounded) // also the watch
		defer stop()
		events, err := e.Watch(ctx)
		for err == nil {
			if observed, err = e.Observe(ctx, h.group); err != nil || as(observed) {
				break
			}
			err = engine.Await(ctx, events, time.Time{})
		}
		return err
	}
	acctest.Eventually(t, what, func() bool {
		err := look()
		if bounded.Err() == nil && !reconcile.Passes(err) {
			must(t, err)
		}
		return err == nil
	})
	return observed
}

// show logs the current members of the group h.group.
func (h Harness) show(t *testing.T, e engine.Engine) {
	t.Helper()
	observed, err := e.Observe(acctest.Bounded(t), h.group)
	t.Logf("there is by now %+v (%v)", observed, err)
	if h.Show != nil {
		t.Log(h.Show(t, e, h.group))
	}
}

// logMembers logs the states of members, for a failed test.
func logMembers(t *testing.T, observed []domain.Observed) {
	t.Helper()
	for _, o := range observed {
		code := -1
		if o.ExitCode != nil {
			code = *o.ExitCode
		}
		t.Logf("%+v: exit code %d, error %q", o, code, o.LastError)
	}
}

// awaitStates waits until the members have exactly these states, in the order of their names.
func (h Harness) awaitStates(t *testing.T, e engine.Engine, states ...domain.State) []domain.Observed {
	t.Helper()
	return h.await(t, e, fmt.Sprint(states), func(observed []domain.Observed) bool {
		var found []domain.State
		for _, o := range observed {
			found = append(found, o.State)
		}
		return slices.Equal(found, states)
	})
}

// awaitAlive waits until the members have exactly this number of processes. A member counts as running from the start
// of what runs its command, so the process may appear a moment later; a busy Docker Engine may take longer to end
// containers than a removal waits for.
func (h Harness) awaitAlive(t *testing.T, e engine.Engine, want int) {
	t.Helper()
	alive := 0
	defer func() {
		if t.Failed() {
			t.Logf("there are %d processes", alive)
			h.show(t, e)
		}
	}()
	acctest.Eventually(t, fmt.Sprintf("%d processes", want), func() bool {
		alive = h.Alive(t, e, h.group)
		return alive == want
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
