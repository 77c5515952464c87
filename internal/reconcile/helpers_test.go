package reconcile_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/patience"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// recorder records the calls to an engine, and lets a test interfere.
type recorder struct {
	mutex sync.Mutex
	calls []string
	// changes are the calls that may change something.
	changes map[string]bool
	// before is called with the name of each call, and may make it fail.
	before func(call string) error
}

// recorded returns the engine with its calls going through a recorder.
func recorded(e engine.Engine) (engine.Engine, *recorder) {
	r := &recorder{changes: map[string]bool{}}
	return engine.Intercept(e, func(_ context.Context, call engine.Call, do func() error) error {
		r.mutex.Lock()
		r.calls = append(r.calls, call.Name)
		r.changes[call.Name] = call.Changes
		before := r.before
		r.mutex.Unlock()
		if before != nil {
			if err := before(call.Name); err != nil {
				return err
			}
		}
		return do()
	}), r
}

// made returns the calls so far.
func (r *recorder) made() []string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return slices.Clone(r.calls)
}

// names returns the distinct names of the calls so far, sorted.
func (r *recorder) names() []string {
	unique := map[string]bool{}
	for _, call := range r.made() {
		unique[call] = true
	}
	return slices.Sorted(maps.Keys(unique))
}

// within returns a context with a timeout, for what would hang if it were wrong.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience.Limit)
	t.Cleanup(cancel)
	return ctx
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// putPool applies a pool, and fails on any warning.
func putPool(t *testing.T, r reconcile.Reconciler, spec domain.GPUPool, created bool) {
	t.Helper()
	warnings, err := r.PutPool(within(t), spec, created, nil)
	must(t, err)
	if len(warnings) > 0 {
		t.Errorf("warnings about pool %s: %v", spec.Name, warnings)
	}
}

// group returns the specification of the TensorFlow group "mnist" with this many members.
func group(ps, workers int, changes ...func(g *domain.Group)) domain.Group {
	g := domain.Group{
		Cluster: "lab", Name: "mnist", Framework: "tensorflow", RestartScope: domain.ScopeMember,
		WaitFor:  domain.WaitRunning,
		Template: domain.Template{Command: []string{"train"}},
		Roles:    map[string]domain.Role{"ps": {Replicas: &ps}, "worker": {Replicas: &workers}},
	}
	for _, change := range changes {
		change(&g)
	}
	return g
}

// role returns a change of one role of a group.
func role(name string, change func(r *domain.Role)) func(g *domain.Group) {
	return func(g *domain.Group) {
		r := g.Roles[name]
		change(&r)
		g.Roles[name] = r
	}
}

func waitForCompletion(g *domain.Group) { g.WaitFor = domain.WaitCompleted }

func asAWhole(g *domain.Group) { g.RestartScope = domain.ScopeGroup }

func trigger(value string) func(g *domain.Group) {
	return func(g *domain.Group) { g.Triggers = map[string]string{"data": value} }
}
