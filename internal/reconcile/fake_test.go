package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/storetest"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// fake is an in-memory engine in which nothing happens by itself: each Observe advances every started member by one
// step of its play, and every removed one by a step towards its end.
type fake struct {
	storetest.Memory

	mutex   sync.Mutex
	staged  map[string]domain.MemberSpec
	members map[string]*actor
	locks   map[string]engine.Holder
	// residents are the answers to successive looks, the last one repeated; nil is a running controller.
	residents []domain.Residents
	watchers  map[chan struct{}]bool
	logs      map[string][]string

	// plays are what members do in their first, second, … run; the last one is repeated. A member
	// without any keeps running.
	plays map[string][]play
	busy  []int
	// inventory is the state of the hosts apart from their number, and traits are those of the engine.
	inventory engine.Inventory
	traits    engine.Traits
	// gpus are the answers to successive looks at the hosts' GPUs, the last one repeated.
	gpus []map[string]domain.HostGPUs
	// folders are the folders that members left behind.
	folders map[domain.KeptFolder]bool
	// absent is a command that the hosts lack.
	absent string
}

// actor is a member and the rest of its play.
type actor struct {
	observed domain.Observed
	spec     domain.MemberSpec
	runs     int
	rest     play
	// leaving is how many more times a removed member is observed.
	leaving int
	removed bool
}

// play is what a member does in a run, step by step.
type play []step

// step is what happens to a member.
type step struct {
	state     domain.State
	code      int
	unstarted bool
}

var (
	waits = step{state: domain.StatePending}
	runs  = step{state: domain.StateRunning}
)

// exits makes the member end; its restart rule decides what follows.
func exits(code int) step { return step{code: code} }

// cannotStart makes the member fail before it runs; its restart rule decides what follows.
func cannotStart(code int) step { return step{code: code, unstarted: true} }

// epoch is the time of everything that happens in the fake.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// newFake returns an engine with the cluster "lab" of two hosts that share an address.
func newFake() *fake {
	host := domain.Host{Address: "10.0.0.1", Capacity: domain.Capacity{CPUs: 64, MemoryMiB: 1 << 16}}
	f := &fake{
		staged: map[string]domain.MemberSpec{}, members: map[string]*actor{}, locks: map[string]engine.Holder{},
		watchers: map[chan struct{}]bool{}, logs: map[string][]string{}, plays: map[string][]play{},
	}
	f.Changed = func() {
		f.mutex.Lock()
		defer f.mutex.Unlock()
		f.notify()
	}
	set(f, domain.ClusterDocument{Header: domain.Header{Revision: 1}, Spec: domain.Cluster{
		Name: "lab", Engine: "fake", Hosts: map[string]domain.Host{"a": host, "b": host},
	}})
	return f
}

// set stores a document as it is.
func set[T any, P domain.Document[T]](f *fake, doc T) {
	storetest.Set[T, P](&f.Memory, doc)
}

// documents returns the stored documents of a type.
func documents[T any, P domain.Document[T]](f *fake) map[string]T {
	return storetest.Documents[T, P](&f.Memory)
}

// drop removes the stored documents of a type.
func drop[T any, P domain.Document[T]](f *fake) { storetest.Drop[T, P](&f.Memory) }

// hosts returns the hosts of the cluster.
func (f *fake) hosts() map[string]domain.Host {
	return documents[domain.ClusterDocument](f)[""].Spec.Hosts
}

// setHosts replaces the hosts of the cluster.
func (f *fake) setHosts(hosts map[string]domain.Host) {
	cluster := documents[domain.ClusterDocument](f)[""]
	cluster.Spec.Hosts = hosts
	set(f, cluster)
}

func (f *fake) Traits() engine.Traits {
	traits := f.traits
	traits.Name, traits.FilesDir = "fake", func(member string) string { return "/files/" + member }
	return traits
}

func (f *fake) Snapshot() engine.Engine { return f }

func (f *fake) Form(_ context.Context, cluster domain.Cluster) (domain.Cluster, error) {
	return cluster, nil
}

func (f *fake) Survey(_ context.Context, cluster domain.Cluster) (domain.Cluster, error) {
	return cluster, nil
}

func (f *fake) Complete(_ context.Context, cluster domain.Cluster) (domain.Cluster, domain.Problems, error) {
	return cluster, nil, nil
}

func (f *fake) Inventory(_ context.Context, cluster domain.Cluster) (engine.Inventory, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	inventory := f.inventory
	inventory.Hosts, inventory.BusyPorts = cluster.Hosts, map[string][]int{"10.0.0.1": f.busy}
	return inventory, nil
}

// lose takes a host down, with everything that runs there.
func (f *fake) lose(host string) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	gone := map[string]string{host: "host " + host + " is down"}
	f.inventory.Closed, f.inventory.Lost = gone, gone
	f.notify()
}

func (f *fake) Preflight(_ context.Context, specs []domain.MemberSpec) (problems domain.Problems, err error) {
	for _, spec := range specs {
		problems.Warn(nil, "Limits not enforced", "nothing keeps %s from using more", spec.Name)
		if len(spec.Command) > 0 && spec.Command[0] == f.absent {
			problems.Add(nil, "Command not found", "%q is not there", f.absent)
		}
	}
	return problems, nil
}

func (f *fake) Usage(context.Context, time.Duration) (engine.Usage, error) {
	return engine.Usage{}, nil
}

func (f *fake) Lock(_ context.Context, name string, holder engine.Holder) (func() error, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if held, locked := f.locks[name]; locked {
		return nil, &engine.LockedError{Lock: name, Holder: held}
	}
	f.locks[name] = holder
	return func() error { f.unlock(name); return nil }, nil
}

func (f *fake) unlock(name string) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	delete(f.locks, name)
}

func (f *fake) Hold(ctx context.Context, name string, holder engine.Holder) (context.Context, func() error, error) {
	return engine.HoldFor(ctx, f, name, holder)
}

func (f *fake) Recognise(context.Context, string) error { return nil }

func (f *fake) Dissolve(context.Context) error { return errors.ErrUnsupported }

func (f *fake) Specified(ctx context.Context, group string) ([]domain.Observed, error) {
	return f.Observe(ctx, group)
}

func (f *fake) Prune(context.Context, string, *domain.Group) error { return nil }

func (f *fake) Observe(_ context.Context, group string) ([]domain.Observed, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	observed := f.look(group)
	changed := false
	for name, a := range f.members {
		switch {
		case group != "" && a.observed.Group != group:
		case a.removed && a.leaving == 0:
			delete(f.members, name)
			changed = true
		case a.removed:
			a.leaving--
			changed = true
		case len(a.rest) > 0 && a.observed.State != domain.StateStopped:
			a.take(a.rest[0])
			a.rest = a.rest[1:]
			changed = true
		}
	}
	if changed {
		f.notify()
	}
	return observed, nil
}

// look returns the members of a group, or of all groups for "", sorted by name.
func (f *fake) look(group string) []domain.Observed {
	var observed []domain.Observed
	for name, spec := range f.staged {
		if f.members[name] == nil {
			observed = append(observed, domain.Observed{
				Name: name, Group: spec.Group, Role: spec.Role, Index: spec.Index, Host: spec.Host,
				Address: spec.Address, State: domain.StatePending,
			})
		}
	}
	for _, a := range f.members {
		observed = append(observed, a.observed)
	}
	for i := range observed {
		observed[i].HostTrouble = f.inventory.Closed[observed[i].Host]
	}
	observed = slices.DeleteFunc(observed, func(o domain.Observed) bool { return group != "" && o.Group != group })
	slices.SortFunc(observed, func(a, b domain.Observed) int {
		return slices.Compare([]byte(a.Name), []byte(b.Name))
	})
	return observed
}

func (a *actor) take(s step) {
	moment, o := epoch, &a.observed
	switch s.state {
	case domain.StatePending:
	case domain.StateRunning:
		if o.State == domain.StateRestarting {
			o.Restarts++
		}
		o.State, o.StartedAt, o.LastError = s.state, &moment, ""
		if o.RunStartedAt == nil {
			o.RunStartedAt = &moment
		}
	default:
		verdict := a.spec.Restart.Judge(s.code, o.Restarts)
		o.State, o.ExitCode, o.FinishedAt, o.LastError, o.Unstarted = verdict.State, &s.code, &moment, verdict.Reason,
			s.unstarted
	}
}

func (f *fake) Stage(_ context.Context, specs []domain.MemberSpec) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, spec := range specs {
		f.staged[spec.Name] = spec
	}
	f.notify()
	return nil
}

func (f *fake) Start(_ context.Context, group string, run int) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for name, spec := range f.staged {
		if spec.Group != group || spec.Run > run {
			continue
		}
		delete(f.staged, name)
		if spec.Run < run {
			continue
		}
		a := f.members[name]
		if a == nil {
			a = &actor{}
			f.members[name] = a
		}
		if a.runs > 0 && a.spec.Run == spec.Run && a.spec.Hash == spec.Hash {
			a.spec, a.observed.Live, a.observed.Replicas = spec, nil, nil
			continue
		}
		a.spec, a.removed = spec, false
		a.observed = domain.Observed{
			Name: name, Group: spec.Group, Role: spec.Role, Index: spec.Index, Host: spec.Host, Address: spec.Address,
			Hash: spec.Hash, Run: spec.Run, State: domain.StatePending,
		}
		a.rest = play{runs}
		if plays := f.plays[name]; len(plays) > 0 {
			a.rest = plays[min(a.runs, len(plays)-1)]
		}
		a.runs++
	}
	f.notify()
	return nil
}

func (f *fake) Stop(_ context.Context, runs map[string]int, reason domain.StopReason) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for name, run := range runs {
		if a := f.members[name]; a != nil && a.observed.Run == run && !a.observed.State.Ended() {
			a.observed.State, a.observed.StopReason = domain.StateStopped, reason
		}
	}
	f.notify()
	return nil
}

func (f *fake) Remove(_ context.Context, names []string) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, name := range names {
		delete(f.staged, name)
		if a := f.members[name]; a != nil {
			a.removed, a.leaving = true, 1
		}
	}
	f.notify()
	return nil
}

func (f *fake) Watch(ctx context.Context) (<-chan struct{}, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	events := make(chan struct{}, 1)
	f.watchers[events] = true
	context.AfterFunc(ctx, func() {
		f.mutex.Lock()
		defer f.mutex.Unlock()
		f.close(events)
	})
	return events, nil
}

func (f *fake) close(events chan struct{}) {
	if f.watchers[events] {
		delete(f.watchers, events)
		close(events)
	}
}

// loseEvents ends the event streams.
func (f *fake) loseEvents() {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for events := range f.watchers {
		f.close(events)
	}
}

func (f *fake) notify() {
	for events := range f.watchers {
		select {
		case events <- struct{}{}:
		default:
		}
	}
}

func (f *fake) Logs(_ context.Context, member string, options engine.LogOptions) ([]string, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.members[member] == nil {
		return nil, engine.ErrNotFound
	}
	lines := f.logs[member]
	return lines[max(0, len(lines)-options.Tail):], nil
}

func (f *fake) Follow(context.Context, string, engine.LogPlace) (engine.LogPart, error) {
	return engine.LogPart{}, errors.New("nothing here follows logs")
}

func (f *fake) StartController(context.Context) error { return nil }

func (f *fake) StopController(context.Context) error { return nil }

// put changes the observed state of a member, as if that happened by itself.
func (f *fake) put(name string, change func(o *domain.Observed)) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	change(&f.members[name].observed)
	f.notify()
}

// states returns the states of all members, sorted by name, without advancing any.
func (f *fake) states() string {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return fmt.Sprint(f.look(""))
}

// cast returns a copy of the members by name.
func (f *fake) cast() map[string]actor {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	cast := map[string]actor{}
	for name, a := range f.members {
		cast[name] = *a
	}
	return cast
}

// raw returns a group's stored document as JSON.
func (f *fake) raw(t *testing.T, name string) string {
	t.Helper()
	item, err := f.Get(t.Context(), engine.Key{Kind: domain.GroupKind, Name: name})
	must(t, err)
	return string(item.Data)
}

// document returns a group's stored document.
func (f *fake) document(t *testing.T, name string) domain.GroupDocument {
	t.Helper()
	doc, err := engine.Get[domain.GroupDocument](t.Context(), f, name)
	must(t, err)
	return doc
}

// resident acts as the cluster's controller until the test ends.
func (f *fake) resident(t *testing.T) {
	r := reconcile.Reconciler{Engine: f, Controller: true}
	events, err := f.Watch(t.Context())
	must(t, err)
	done := make(chan struct{})
	t.Cleanup(func() { <-done })
	go func() {
		defer close(done)
		for t.Context().Err() == nil {
			next := time.Now().Add(time.Hour)
			pending, err := r.Pending(t.Context(), time.Now())
			if err != nil {
				t.Error(err)
			}
			for _, p := range pending {
				due := p.Due
				if !due.After(time.Now()) {
					if due, err = r.Keep(t.Context(), p.Group); err != nil && t.Context().Err() == nil {
						t.Error(err)
					}
				}
				if !due.IsZero() && due.Before(next) {
					next = due
				}
			}
			timer := time.NewTimer(time.Until(next))
			select {
			case <-t.Context().Done():
			case <-events:
			case <-timer.C:
			}
			timer.Stop()
		}
	}()
}

// Guard does nothing: there is nothing to keep alive.
func (f *fake) Guard(ctx context.Context) error {
	<-ctx.Done()
	return nil
}
