package reconcile_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/enginetest"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// interleavings is the number of seeds that are tried.
const interleavings = 1000

// TestInterleavings runs applies, scalings by two controllers, and upkeep of a group, with their calls interleaved in
// any order, and any of them dying at any call. In the end the group has as many workers as its last change says, no
// member is there twice, no device has two owners, and nothing is left over.
func TestInterleavings(t *testing.T) {
	const at = 4
	for part := range at {
		t.Run(fmt.Sprintf("seeds %d and on", part*interleavings/at), func(t *testing.T) {
			t.Parallel()
			for seed := part * interleavings / at; seed < (part+1)*interleavings/at && !t.Failed(); seed++ {
				synctest.Test(t, func(t *testing.T) { interleave(t, uint64(seed)) })
			}
		})
	}
}

// interleave tries the interleaving of one seed.
func interleave(t *testing.T, seed uint64) {
	p := &theatre{random: rand.New(rand.NewPCG(seed, 0)), fake: newFake()}
	defer func() {
		if t.Failed() {
			t.Logf("seed %d:\n%s\nthe document: %s\nthe members: %s", seed, strings.Join(p.transcript, "\n"),
				p.raw(t, "mnist"), p.states())
		}
	}()
	withPool("GPU-a1", "GPU-a2", "GPU-a3", "GPU-a4", "GPU-a5")(p.fake)
	inPeace := role("worker", func(r *domain.Role) { r.OnScale = domain.OnScaleNone })
	spec := []func() domain.Group{
		func() domain.Group { return group(1, 2, undeclared) },
		func() domain.Group { return group(1, 2, undeclared, inPeace) },
		func() domain.Group { return group(1, 2, undeclared, asAWhole) },
		func() domain.Group { return group(1, 2, undeclared, onGPUs) },
		func() domain.Group { return farm(2, undeclared) },
		func() domain.Group { return farm(2, undeclared, onGPUs) },
		func() domain.Group { schedules(p.fake); return farm(2, undeclared) },
	}[p.random.IntN(7)]()
	must(t, reconcile.Reconciler{Engine: p.fake}.Update(t.Context(), spec))

	var terraform []func(engine.Engine) error
	for n := range p.random.IntN(3) {
		spec.Roles = maps.Clone(spec.Roles)
		spec.Env = map[string]string{"RATE": fmt.Sprint(n)}
		change := spec
		terraform = append(terraform,
			func(e engine.Engine) error { return reconcile.Reconciler{Engine: e}.Update(t.Context(), change) })
	}
	p.process(t, "terraform", terraform)
	for _, name := range []string{"controller a", "controller b"} {
		var steps []func(engine.Engine) error
		for range 2 + p.random.IntN(4) {
			step := p.scale
			if p.random.IntN(3) == 0 {
				step = keep
			}
			steps = append(steps, func(e engine.Engine) error { return step(t, e) })
		}
		p.process(t, name, steps)
	}
	if p.play(t); t.Failed() {
		return
	}
	// A controller and an apply finish what the dead ones left.
	p.keepAll(t)
	if p.document(t, "mnist").Applying {
		must(t, reconcile.Reconciler{Engine: p.fake}.Update(t.Context(), spec))
		p.keepAll(t)
	}
	p.expectEnd(t)
}

// keep does what a controller does for the group between two applies.
func keep(t *testing.T, e engine.Engine) error {
	r := reconcile.Reconciler{Engine: e, Controller: true}
	pending, err := r.Pending(t.Context(), time.Now())
	for _, p := range pending {
		if err == nil {
			_, err = r.Keep(t.Context(), p.Group)
		}
	}
	return err
}

// theatre lets callers of an engine take turns, one call at a time, in random order.
type theatre struct {
	*fake
	random *rand.Rand

	turns sync.Mutex
	// waiting are the calls that wait for their turn; playing is the number of callers that have not ended.
	waiting []*turnOf
	playing int
	// scaled are the scalings of the workers as stored, and reported those that were reported as carried out.
	scaled, reported []domain.Scaled
	scalings         int
	transcript       []string
}

// turnOf is a call that waits for its turn.
type turnOf struct {
	caller *caller
	call   string
	answer chan error
}

// caller is a process that dies after this many calls, unless left is negative.
type caller struct {
	name  string
	left  int
	locks []func() error
}

// process runs steps one after the other; if it dies at one, it continues with the next.
func (p *theatre) process(t *testing.T, name string, steps []func(engine.Engine) error) {
	p.turns.Lock()
	p.playing++
	p.turns.Unlock()
	lives := make([]int, len(steps))
	for i := range lives {
		if lives[i] = -1; p.random.IntN(2) == 0 {
			lives[i] = p.random.IntN(40)
		}
	}
	go func() {
		for i, step := range steps {
			c := &caller{name: name, left: lives[i]}
			err := step(enginetest.OneByOne(engine.Intercept(locking{p.fake, p, c},
				func(_ context.Context, call engine.Call, do func() error) error {
					turn := &turnOf{c, call.Name, make(chan error)}
					p.turns.Lock()
					p.waiting = append(p.waiting, turn)
					p.turns.Unlock()
					if err := <-turn.answer; err != nil {
						return err
					}
					return do()
				})))
			p.record("%s: %v", name, err)
			if !isPeaceful(err) {
				t.Errorf("%s: %v", name, err)
			}
		}
		p.turns.Lock()
		defer p.turns.Unlock()
		p.playing--
	}()
}

// isPeaceful reports whether an error is that of a caller that died, or that leaves the group to others.
func isPeaceful(err error) bool {
	_, locked := errors.AsType[*engine.LockedError](err)
	_, held := errors.AsType[*reconcile.HeldError](err)
	_, counted := errors.AsType[*reconcile.CountError](err)
	return err == nil || locked || held || counted || errors.Is(err, enginetest.ErrDead)
}

func (p *theatre) record(format string, args ...any) {
	p.turns.Lock()
	defer p.turns.Unlock()
	p.transcript = append(p.transcript, fmt.Sprintf(format, args...))
}

// play lets waiting callers make one call at a time, until all have ended.
func (p *theatre) play(t *testing.T) {
	for {
		synctest.Wait() // all wait for their turn, sleep, or have ended
		p.turns.Lock()
		waiting, playing := len(p.waiting), p.playing
		p.turns.Unlock()
		if playing == 0 {
			return
		}
		if waiting == 0 {
			<-time.After(10 * time.Millisecond)
			continue
		}
		i := p.random.IntN(waiting)
		turn := p.waiting[i]
		p.waiting = slices.Delete(p.waiting, i, i+1)
		p.record("%s %s (%d)", turn.caller.name, turn.call, turn.caller.left)
		if turn.caller.left == 0 || t.Failed() {
			for _, release := range turn.caller.locks {
				must(t, release())
			}
			turn.caller.locks = nil
			turn.answer <- enginetest.ErrDead
			continue
		}
		turn.caller.left--
		turn.answer <- nil
		synctest.Wait()
		p.expectOwners(t)
	}
}

// locking is an engine that records its caller's locks, and who scales the workers.
type locking struct {
	*fake
	theatre *theatre
	caller  *caller
}

func (l locking) Snapshot() engine.Engine { return l }

func (l locking) Lock(ctx context.Context, name string, holder engine.Holder) (func() error, error) {
	release, err := l.fake.Lock(ctx, name, holder)
	if err != nil {
		return nil, err
	}
	once := sync.OnceValue(release)
	l.caller.locks = append(l.caller.locks, once)
	return once, nil
}

func (l locking) Put(ctx context.Context, item engine.Item) (engine.Item, error) {
	if item.Kind != domain.GroupKind {
		return l.fake.Put(ctx, item)
	}
	before, err := engine.Get[domain.GroupDocument](ctx, l.fake, item.Name)
	if err != nil {
		return item, err
	}
	after, err := l.fake.Put(ctx, item)
	if err != nil {
		return after, err
	}
	var doc domain.GroupDocument
	if err := json.Unmarshal(item.Data, &doc); err != nil {
		return after, err
	}
	if now := doc.Scaled["worker"]; now != before.Scaled["worker"] {
		l.theatre.scaled = append(l.theatre.scaled, now)
		if now.From != before.Counts["worker"] || now.To != doc.Counts["worker"] {
			return after, fmt.Errorf("%s writes %d workers over %d, and that it was %+v", l.caller.name,
				doc.Counts["worker"], before.Counts["worker"], now)
		}
	} else if doc.Counts["worker"] != before.Counts["worker"] {
		return after, fmt.Errorf("%s writes %d workers over %d", l.caller.name, doc.Counts["worker"],
			before.Counts["worker"])
	}
	return after, nil
}

// scale asks for a random number of workers, based on the number a moment ago.
func (p *theatre) scale(t *testing.T, e engine.Engine) error {
	doc, err := engine.Get[domain.GroupDocument](t.Context(), e, "mnist")
	if err != nil {
		return err
	}
	p.turns.Lock()
	p.scalings++
	s := scaling(doc.Counts["worker"], p.random.IntN(6))
	s.At = epoch.Add(time.Duration(p.scalings) * time.Second)
	for range p.random.IntN(3) {
		s.Remove = append(s.Remove, domain.MemberName("mnist", "worker", p.random.IntN(6)))
	}
	p.turns.Unlock()
	done, _, err := reconcile.Reconciler{Engine: e, Controller: true}.Scale(t.Context(), s)
	if err == nil && done.To != done.From {
		p.turns.Lock()
		defer p.turns.Unlock()
		p.reported = append(p.reported, done)
	}
	return err
}

// expectOwners fails if a device has two owners, in the document or among members that run or are about to end.
func (p *theatre) expectOwners(t *testing.T) {
	t.Helper()
	stored, live := map[string]string{}, map[string]string{}
	own := func(owners map[string]string, member string, devices domain.DeviceSet) {
		for _, uuid := range devices.UUIDs() {
			if other, taken := owners[uuid]; taken {
				t.Errorf("%s and %s both have %s", other, member, uuid)
			}
			owners[uuid] = member
		}
	}
	for member, at := range p.document(t, "mnist").Assignments {
		own(stored, member, at.GPUs)
	}
	for member, a := range p.cast() {
		if a.spec.Env["CUDA_VISIBLE_DEVICES"] != "-1" {
			own(live, member, domain.DeviceSet(a.spec.Env["CUDA_VISIBLE_DEVICES"]))
		}
	}
}

// expectEnd fails unless the group matches its last changes.
func (p *theatre) expectEnd(t *testing.T) {
	t.Helper()
	doc := p.document(t, "mnist")
	want := 1
	if n := len(p.scaled); n > 0 {
		want = p.scaled[n-1].To
	}
	if doc.Counts["worker"] != want || doc.Scaling || doc.Applying {
		t.Errorf("there are to be %d workers after %+v", doc.Counts["worker"], p.scaled)
	}
	for i, done := range p.reported {
		if at := slices.Index(p.scaled, done); at < i {
			t.Errorf("%+v was reported and is number %d of %+v", done, at, p.scaled)
		}
	}
	group, err := reconcile.Reconciler{Engine: p.fake}.Read(t.Context(), "mnist")
	must(t, err)
	if changes := reconcile.Diff(group.Decision, group.Observed); len(changes) > 0 || group.Progress.Phase.Ended() {
		t.Errorf("the group is %+v, and there are changes left: %+v", group.Progress, changes)
	}
	var members []string
	for _, m := range group.Members {
		members = append(members, m.Name)
	}
	there := slices.Sorted(maps.Keys(p.cast()))
	if slices.Sort(members); !slices.Equal(members, there) || len(members) != want+1 ||
		len(doc.Assignments) != len(members) {
		t.Errorf("the members are %v, and are to be %v at %v", there, members, doc.Assignments)
	}
	p.expectOwners(t)
	if len(p.locks) > 0 || len(p.staged) > 0 {
		t.Errorf("left are the locks %v, and staged %v", p.locks, p.staged)
	}
}
