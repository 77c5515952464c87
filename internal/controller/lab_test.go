package controller

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/patience"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// lacking is the part of an engine that the lab lacks.
type lacking struct{ engine.Engine }

// lab is an in-memory cluster whose members run as soon as they are started, and share a load. Other calls go to the
// nil engine inside it, and panic.
type lab struct {
	lacking
	*items
	*testing.T

	mu      sync.Mutex
	staged  map[string]domain.MemberSpec
	members map[string]domain.Observed
	// load is the load of a group in CPUs, which its members share; loads overrides the share of single members. One
	// that is not a number is not measured.
	load  float64
	loads map[string]float64
	now   time.Time
	// faults are errors that calls return, once each.
	faults map[string]error
	// starting are members that take a while until they run.
	starting map[string]bool
	// held are the locks that somebody else holds.
	held map[string]bool
	// schedules makes the lab schedule members without identity itself.
	schedules bool
	// handsOver is as in [engine.Traits]; onStage, if not nil, is called for each staged specification.
	handsOver bool
	onStage   func(spec domain.MemberSpec)
}

// newLab returns a cluster with a group "job" of two workers without declared replicas, and a
// policy for them after changes.
func newLab(t *testing.T, changes func(p *domain.AutoscalingPolicy)) *lab {
	t.Helper()
	l := &lab{
		items: newItems(), T: t, staged: map[string]domain.MemberSpec{}, members: map[string]domain.Observed{},
		loads: map[string]float64{}, now: noon,
		faults: map[string]error{},
	}
	host := domain.Host{Capacity: domain.Capacity{CPUs: 64, MemoryMiB: 1 << 16}}
	edit(t, l.items, "", func(doc *domain.ClusterDocument) {
		doc.Spec = domain.Cluster{Name: "lab", Engine: "lab", Hosts: map[string]domain.Host{"a": host, "b": host}}
	})
	group := domain.Group{
		Cluster: "lab", Name: "job", Framework: "none", RestartScope: domain.ScopeMember, WaitFor: domain.WaitRunning,
		Completion: domain.Completion{When: domain.WhenNever},
		Roles: map[string]domain.Role{
			"worker": {Template: domain.Template{Command: []string{"work"}}, OnScale: domain.OnScaleNone},
		},
	}
	r := reconcile.Reconciler{Engine: l}
	l.must(r.Create(t.Context(), group))
	l.scale(1, 2)
	policy := domain.AutoscalingPolicy{
		Cluster: "lab", Group: "job", Role: "worker", Min: 1, Max: 6,
		Metrics: map[string]domain.ScalingMetric{"cpu": {
			Source:    domain.ScalingSource{Agent: &domain.AgentSource{Measure: domain.AgentCPUs}},
			Algorithm: domain.ScalingAlgorithm{Target: &domain.TargetAlgorithm{Value: 0.5}},
		}},
		ScaleIn: domain.ScalingBehaviour{Stabilisation: new(domain.Duration(time.Minute))},
	}
	changes(&policy)
	l.put(policy)
	return l
}

func (l *lab) must(_ any, err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// fails returns and clears the error that a call should return.
func (l *lab) fails(call string) error {
	err := l.faults[call]
	delete(l.faults, call)
	return err
}

// scale changes the count behind the controller's back, before anything is decided.
func (l *lab) scale(from, to int) {
	l.Helper()
	_, _, err := reconcile.Reconciler{Engine: l}.Scale(l.Context(),
		reconcile.Scaling{Group: "job", Role: "worker", From: from, To: to, At: l.now.Add(-time.Hour), Why: "a test"})
	l.must(nil, err)
}

// put stores a policy, as Terraform does.
func (l *lab) put(policy domain.AutoscalingPolicy) {
	l.Helper()
	edit(l.T, l.items, policy.Key(), func(doc *domain.AutoscalingPolicyDocument) { doc.Spec = policy })
}

// end marks a policy as ending, and drop deletes it.
func (l *lab) end(policy string) {
	l.Helper()
	edit(l.T, l.items, policy, func(doc *domain.AutoscalingPolicyDocument) { doc.Ending = true })
}

func (l *lab) drop(policy string) {
	l.Helper()
	if err := engine.Delete[domain.AutoscalingPolicyDocument](l.Context(), &l.Memory, policy); err != nil {
		l.Error(err)
	}
}

// requires sets the CPUs that each worker requests.
func (l *lab) requires(cpus float64) {
	l.Helper()
	edit(l.T, l.items, "job", func(doc *domain.GroupDocument) {
		role := doc.Spec.Roles["worker"]
		role.Resources.CPUs = cpus
		doc.Spec.Roles["worker"] = role
	})
}

// policy returns the workers' policy.
func (l *lab) policy() domain.AutoscalingPolicy {
	l.Helper()
	return documentOf[domain.AutoscalingPolicyDocument](l.T, l.items, "job/worker").Spec
}

// count returns the workers' count.
func (l *lab) count() int {
	l.Helper()
	return documentOf[domain.GroupDocument](l.T, l.items, "job").Counts["worker"]
}

// controller returns the scaler of a newly started controller.
func (l *lab) controller() *scaler {
	l.Helper()
	s, err := newScaler(l.Context(), reconcile.Reconciler{Engine: l, Controller: true}, slog.New(slog.DiscardHandler),
		newBoard())
	l.must(nil, err)
	s.meter.Limit = patience.Limit // what hangs in a test hangs until that releases it
	return s
}

// pass lets time pass with a controller at work, and returns the successive counts.
func (l *lab) pass(s *scaler, d time.Duration) (counts []int) {
	l.Helper()
	for end := l.now.Add(d); l.now.Before(end); l.now = l.now.Add(time.Second) {
		l.must(nil, l.look(s))
		for _, f := range s.followed {
			if f.changing {
				s.finish(<-s.outcomes, l.now)
			}
		}
		counts = append(counts, l.count())
	}
	return slices.Compact(counts)
}

// look makes a controller look, and decide with the answers.
func (l *lab) look(s *scaler) error {
	return lookAndDecide(l.Context(), s, l.now)
}

// lookAndDecide makes the policies that are due ask, waits for all answers, and makes them decide.
func lookAndDecide(ctx context.Context, s *scaler, now time.Time) error {
	err := s.look(ctx, now)
	if s.sharing.deciding {
		s.takeShare(<-s.sharing.shares, now)
	}
	err = errors.Join(err, s.decide(ctx, now))
	for len(s.answered) < s.asking {
		s.answered = append(s.answered, <-s.answers)
	}
	return errors.Join(err, s.decide(ctx, now))
}

func (l *lab) Traits() engine.Traits {
	return engine.Traits{
		Name: "lab", Schedules: l.schedules, HandsOver: l.handsOver,
		MemberAddress: func(member string) string { return member }, FilesDir: func(string) string { return "/files" },
	}
}

func (l *lab) Snapshot() engine.Engine { return l }

func (l *lab) Inventory(_ context.Context, cluster domain.Cluster) (engine.Inventory, error) {
	return engine.Inventory{Hosts: cluster.Hosts}, nil
}

func (l *lab) Preflight(context.Context, []domain.MemberSpec) (domain.Problems, error) {
	return nil, nil
}

func (l *lab) Lock(_ context.Context, name string, _ engine.Holder) (func() error, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[name] {
		return nil, &engine.LockedError{Lock: name, Holder: engine.Holder{Who: "somebody", Process: 1}}
	}
	if err := l.fails("Lock"); err != nil {
		return nil, err
	}
	return func() error { return nil }, nil
}

func (l *lab) Hold(
	ctx context.Context, name string, holder engine.Holder,
) (held context.Context, release func() error, err error) {
	return engine.HoldFor(ctx, l, name, holder)
}

func (l *lab) Prune(context.Context, string, *domain.Group) error { return nil }

func (l *lab) StartController(context.Context) error { return nil }

// Put stores the item, and then returns the fault if there is one, as if the answer was lost.
func (l *lab) Put(ctx context.Context, item engine.Item) (engine.Item, error) {
	stored, err := l.items.Put(ctx, item)
	if err != nil {
		return stored, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return stored, l.fails("Put " + item.Kind.Name)
}

func (l *lab) Observe(context.Context, string) ([]domain.Observed, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.SortedFunc(maps.Values(l.members), func(a, b domain.Observed) int { return a.Index - b.Index }), nil
}

func (l *lab) Stage(_ context.Context, specs []domain.MemberSpec) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, spec := range specs {
		l.staged[spec.Name] = spec
		if l.onStage != nil {
			l.onStage(spec)
		}
	}
	return nil
}

func (l *lab) Start(context.Context, string, int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.fails("Start"); err != nil {
		return err
	}
	long := l.now.Add(-time.Hour)
	for name, spec := range l.staged {
		l.members[name] = domain.Observed{
			Name: name, Group: spec.Group, Role: spec.Role, Index: spec.Index, Host: spec.Host, Address: spec.Address,
			Hash: spec.Hash, Run: spec.Run,
			State: domain.StateRunning, StartedAt: &long, RunStartedAt: &long,
		}
		if l.starting[name] {
			l.starts(name, domain.StatePending)
		}
	}
	clear(l.staged)
	return nil
}

// starts sets the state of a member, and runs makes it run.
func (l *lab) starts(name string, state domain.State) {
	o := l.members[name]
	o.State = state
	l.members[name] = o
}

func (l *lab) runs(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.starts(name, domain.StateRunning)
}

func (l *lab) Remove(_ context.Context, names []string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range names {
		delete(l.members, name)
	}
	return nil
}

func (l *lab) Watch(ctx context.Context) (<-chan struct{}, error) {
	events := make(chan struct{}, 1)
	events <- struct{}{}
	context.AfterFunc(ctx, func() { close(events) })
	return events, nil
}

func (l *lab) Usage(context.Context, time.Duration) (engine.Usage, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	usage := engine.Usage{Members: map[string]engine.MemberUsage{}, Hosts: map[string]engine.HostUsage{}}
	for name, o := range l.members {
		share := l.load / float64(len(l.members))
		if own, has := l.loads[name]; has {
			share = own
		}
		v := &share
		if math.IsNaN(share) {
			v = nil
		}
		usage.Members[name] = engine.MemberUsage{
			CPUs: domain.Measure{Last: v, Mean: v, Max: v, P95: v}, SampledAt: l.now,
		}.Of(o)
	}
	for i, name := range []string{"a", "b"} {
		v := new(float64(1 + 2*i))
		usage.Hosts[name] = engine.HostUsage{
			CPUs: domain.Measure{Last: v, Mean: v, Max: v, P95: v}, TotalCPUs: 4, SampledAt: l.now,
		}
	}
	return usage, nil
}
