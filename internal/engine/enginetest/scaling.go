package enginetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// testScaling changes the numbers of members of groups that share a cluster, as policies do.
func testScaling(t *testing.T, h Harness) {
	e := h.cluster(t)
	number := 0
	try := func(name string, test func(t *testing.T, h Harness, e engine.Engine)) {
		number++
		own := h
		own.group = fmt.Sprint(h.group, "-", number)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, own, e)
			must(t, reconcile.Reconciler{Engine: e}.Destroy(acctest.Bounded(t), own.group))
			own.checkGone(t, NewMortal(e, 0))
		})
	}
	try("members that know each other", scales)
	try("in peace", scalesInPeace)
	try("another size", resizes)
	try("interchangeable members", scalesInterchangeable)
	try("beside others", scalesBesideOthers)
	try("as far as there is room", scalesShort)
	interleavings := 6
	switch {
	case h.Brief:
		interleavings = 0
	case acctest.AllKills():
		interleavings = 40
	}
	for seed := range interleavings {
		random := rand.New(rand.NewPCG(uint64(seed), 0)) //nolint:gosec // it is not negative, and not secret
		try(fmt.Sprint("interleaving ", seed),
			func(t *testing.T, h Harness, e engine.Engine) { interleaves(t, h, e, random) })
	}
}

// resizes: after workers' resource requests change, running members keep running, new ones start with the new request,
// nothing counts as drift, and no apply restarts any.
func resizes(t *testing.T, h Harness, e engine.Engine) {
	spec := workers(h.job(0, "wait"), func(r *domain.Role) {
		r.Replicas, r.OnScale, r.Resources = nil, domain.OnScaleNone, domain.ResourceRequirements{MemoryMiB: 64}
	})
	one := started(h.follow(t, e, spec))
	resize := func(mib int64) {
		t.Helper()
		must(t, reconcile.Reconciler{Engine: e, Controller: true}.Resize(acctest.Bounded(t), reconcile.Sizing{
			Group: h.group, Role: "worker", To: domain.Resources{MemoryMiB: mib}, At: time.Now(), Why: "of the test",
		}))
	}
	resize(128)
	h.scaled(t, e, 1)
	two := h.scale(t, e, 1, 2)
	must(t, reconcile.Reconciler{Engine: e}.Update(acctest.Bounded(t), spec))
	resize(0)
	last := h.scaled(t, e, 2)
	first, second := h.memberName(0), h.memberName(1)
	if after := started(last); !after[first].Equal(one[first]) || !after[second].Equal(started(two)[second]) {
		t.Errorf("the members started at %v, then at %v, and at last at %v", one, started(two), after)
	}
	for _, o := range last.Observed {
		if o.Live != nil || o.Restarts > 0 || !last.Found().Spec.Equal(last.Document.Spec) {
			t.Errorf("%s is %+v", o.Name, o)
		}
	}
}

// scale changes the number of a group's workers as a policy does, and returns the group once its members run.
func (h Harness) scale(t *testing.T, e engine.Engine, from, to int, remove ...string) reconcile.Group {
	t.Helper()
	done, short, err := reconcile.Reconciler{Engine: e, Controller: true}.Scale(acctest.Bounded(t), reconcile.Scaling{
		Group: h.group, Role: "worker", From: from, To: to, Remove: remove, At: time.Now(), Why: "of the test",
	})
	must(t, err)
	if done.From != from || done.To != to || short != "" {
		t.Fatalf("%d workers were to be %d: done is %+v, short %q", from, to, done, short)
	}
	return h.scaled(t, e, to)
}

// scaled returns the group once it has this number of running workers, and nothing is left to do.
func (h Harness) scaled(t *testing.T, e engine.Engine, workers int) (group reconcile.Group) {
	t.Helper()
	defer func() {
		if t.Failed() {
			h.show(t, e)
		}
	}()
	acctest.Eventually(t, fmt.Sprint(workers, " workers"), func() bool {
		var err error
		group, err = reconcile.Reconciler{Engine: e}.Read(t.Context(), h.group)
		if reconcile.Passes(err) {
			return false
		}
		must(t, err)
		return !group.Document.Scaling && !group.NeedsApply() && group.Progress.Phase == domain.PhaseRunning
	})
	found := slices.DeleteFunc(slices.Clone(group.Observed), func(o domain.Observed) bool { return o.Role != "worker" })
	if group.Document.Counts["worker"] != workers || len(found) != workers ||
		len(group.Observed) != len(group.Members) {
		t.Fatalf("%d workers were to run, and there are %v of %+v", workers, group.Observed, group.Document)
	}
	h.awaitAlive(t, e, len(group.Members))
	return group
}

// started returns the start times of the members, by name.
func started(group reconcile.Group) map[string]time.Time {
	at := map[string]time.Time{}
	for _, o := range group.Observed {
		at[o.Name] = *o.StartedAt
	}
	return at
}

// follow leaves the number of a group's workers to a policy, and starts the group with one.
func (h Harness) follow(t *testing.T, e engine.Engine, spec domain.Group) reconcile.Group {
	t.Helper()
	must(t, reconcile.Reconciler{
		Engine: e,
	}.Update(acctest.Bounded(t), workers(spec, func(r *domain.Role) { r.Replicas = nil })))
	return h.scaled(t, e, 1)
}

// scales: members that know each other all restart when their number changes.
func scales(t *testing.T, h Harness, e engine.Engine) {
	one := started(h.follow(t, e, h.job(0, "wait")))
	three := started(h.scale(t, e, 1, 3))
	two := started(h.scale(t, e, 3, 2))
	for member, at := range two {
		if at.Equal(three[member]) || at.Equal(one[member]) || three[member].Equal(one[member]) {
			t.Errorf("%s started at %s, %s and %s", member, one[member], three[member], at)
		}
	}
}

// scalesInPeace: with on_scale = "none", running members keep running with what they know. That they know less than
// later ones is no drift, and an apply doesn't correct it.
func scalesInPeace(t *testing.T, h Harness, e engine.Engine) {
	spec := workers(h.job(0, "wait"), func(r *domain.Role) { r.OnScale = domain.OnScaleNone })
	one := started(h.follow(t, e, spec))
	three := h.scale(t, e, 1, 3)
	two := h.scale(t, e, 3, 2)
	for _, o := range two.Observed {
		if o.Live != nil || o.Replicas != nil {
			t.Errorf("%s is said to be changed by somebody else: %+v", o.Name, o)
		}
	}
	must(t, reconcile.Reconciler{
		Engine: e,
	}.Update(acctest.Bounded(t), workers(spec, func(r *domain.Role) { r.Replicas = nil })))
	after := started(h.scaled(t, e, 2))
	if first, second := h.memberName(0), h.memberName(1); !after[first].Equal(one[first]) ||
		!after[second].Equal(started(three)[second]) {
		t.Errorf("the members started at %v, then at %v, and at last at %v", one, started(three), after)
	}
}

// scalesInterchangeable: scaling interchangeable members, whichever are removed, restarts no others.
func scalesInterchangeable(t *testing.T, h Harness, e engine.Engine) {
	running := func(group reconcile.Group) []domain.Observed {
		return slices.DeleteFunc(slices.Clone(group.Observed),
			func(o domain.Observed) bool { return o.Role != "worker" })
	}
	one := running(h.follow(t, e, h.farm(0, "wait")))
	four := running(h.scale(t, e, 1, 4))
	h.kept(t, "that grew", one, four, 1)
	two := running(h.scale(t, e, 4, 2, h.memberName(0), h.memberName(2)))
	h.kept(t, "that shrank", four, two, 2)
	three := running(h.scale(t, e, 2, 3))
	h.kept(t, "that grew again", two, three, 2)
	none := h.scale(t, e, 3, 0)
	if len(none.Observed) != 1 {
		t.Errorf("without workers there are %v", none.Observed)
	}
	h.scale(t, e, 0, 2)
}

// scalesBesideOthers: scaling interchangeable members, after another role that they do not depend on was scaled,
// restarts no running ones.
func scalesBesideOthers(t *testing.T, h Harness, e engine.Engine) {
	spec := h.farm(0, "wait")
	spec.Roles["submit"] = domain.Role{OnScale: domain.OnScaleNone, Template: h.Template("wait")}
	before := h.follow(t, e, spec)
	_, _, err := reconcile.Reconciler{Engine: e, Controller: true}.Scale(acctest.Bounded(t), reconcile.Scaling{
		Group: h.group, Role: "submit", From: 1, To: 2, At: time.Now(), Why: "of the test",
	})
	must(t, err)
	h.scaled(t, e, 1)
	after := h.scale(t, e, 1, 3)
	for _, o := range before.Observed {
		if !started(after)[o.Name].Equal(*o.StartedAt) {
			t.Errorf("%s started at %s and %s", o.Name, o.StartedAt, started(after)[o.Name])
		}
	}
}

// scalesShort asks for more members than there is room for.
func scalesShort(t *testing.T, h Harness, e engine.Engine) {
	cluster, err := engine.Cluster(t.Context(), e)
	must(t, err)
	hosts := len(cluster.Spec.Hosts)
	h.follow(t, e, workers(h.farm(0, "wait"), func(r *domain.Role) {
		r.Placement.Strategy = domain.OnePerHost
		r.Resources.MemoryMiB = 16
	}))
	done, short, err := reconcile.Reconciler{Engine: e, Controller: true}.Scale(acctest.Bounded(t), reconcile.Scaling{
		Group: h.group, Role: "worker", From: 1, To: hosts + 2, At: time.Now(), Why: "of the test",
	})
	must(t, err)
	if want := fmt.Sprintf("%d members, at most one per host", hosts+2); done.To != hosts ||
		!strings.Contains(short, want) {
		t.Errorf("on %d hosts done is %+v, and %q does not say %q", hosts, done, short, want)
	}
	h.scaled(t, e, hosts)
}

// interleaves runs an apply and the scalings of two controllers concurrently, with callers that may die at any call.
// The cluster's own controller finishes an interrupted scaling, another apply an interrupted apply, and in the end the
// number of members is the last one that was stored.
func interleaves(t *testing.T, h Harness, e engine.Engine, random *rand.Rand) {
	spec := workers([]domain.Group{h.job(0, "wait"), h.farm(0, "wait")}[random.IntN(2)], func(r *domain.Role) {
		r.OnScale = domain.OnScales[random.IntN(len(domain.OnScales))]
	})
	h.follow(t, e, spec)
	changed := workers(spec, func(r *domain.Role) { r.Replicas, r.Env = nil, map[string]string{"CHANGED": "yes"} })

	counts := &ledger{}
	var callers sync.WaitGroup
	act := func(step func(e engine.Engine) error) {
		lives := 1000
		if random.IntN(2) == 0 {
			lives = random.IntN(15)
		}
		mortal := NewMortal(noted{e, counts}, lives)
		callers.Go(func() {
			if err := step(mortal); !peaceful(err) {
				t.Errorf("after %v: %v", mortal.Calls(), err)
			}
		})
	}
	if random.IntN(3) > 0 {
		act(func(e engine.Engine) error {
			return reconcile.Reconciler{Engine: e}.Update(acctest.Bounded(t), changed)
		})
	}
	for range 2 {
		var asked []int
		for range 2 + random.IntN(2) {
			asked = append(asked, random.IntN(4))
		}
		act(func(e engine.Engine) error {
			var err error
			for _, to := range asked {
				var doc domain.GroupDocument
				if doc, err = engine.Get[domain.GroupDocument](t.Context(), e, h.group); err != nil {
					return err
				}
				_, _, err = reconcile.Reconciler{
					Engine: e, Controller: true,
				}.Scale(acctest.Bounded(t), reconcile.Scaling{
					Group: h.group, Role: "worker", From: doc.Counts["worker"], To: to, At: time.Now(),
					Why: "of the test",
				})
				if !peaceful(err) {
					return err
				}
			}
			return err
		})
	}
	callers.Wait()

	doc, err := engine.Get[domain.GroupDocument](t.Context(), e, h.group)
	must(t, err)
	if doc.Applying {
		must(t, reconcile.Reconciler{Engine: e}.Update(acctest.Bounded(t), changed))
	}
	want := 1
	if n := len(counts.changes); n > 0 {
		want = counts.changes[n-1]
	}
	h.scaled(t, e, want)
}

// peaceful reports whether there is no error, or one of a caller that died or left the group to others.
func peaceful(err error) bool {
	_, locked := errors.AsType[*engine.LockedError](err)
	_, held := errors.AsType[*reconcile.HeldError](err)
	_, counted := errors.AsType[*reconcile.CountError](err)
	return err == nil || locked || held || counted || errors.Is(err, ErrDead)
}

// ledger records the changed numbers of workers, in order.
type ledger struct {
	mutex   sync.Mutex
	last    domain.Scaled
	changes []int
}

// noted is an engine that records changes of the number of workers.
type noted struct {
	engine.Engine
	ledger *ledger
}

// Put stores an item, one at a time.
func (n noted) Put(ctx context.Context, item engine.Item) (engine.Item, error) {
	n.ledger.mutex.Lock()
	defer n.ledger.mutex.Unlock()
	after, err := n.Engine.Put(ctx, item)
	var doc domain.GroupDocument
	if err != nil || item.Kind != domain.GroupKind || json.Unmarshal(item.Data, &doc) != nil {
		return after, err
	}
	if scaled := doc.Scaled["worker"]; scaled != n.ledger.last {
		n.ledger.last = scaled
		n.ledger.changes = append(n.ledger.changes, doc.Counts["worker"])
	}
	return after, nil
}
