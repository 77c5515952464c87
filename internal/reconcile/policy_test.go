package reconcile_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// uncounted leaves the number of workers to a policy.
func uncounted(g *domain.Group) { role("worker", func(r *domain.Role) { r.Replicas = nil })(g) }

// policy returns a policy for the workers of the group "mnist".
func policy(changes ...func(p *domain.AutoscalingPolicy)) domain.AutoscalingPolicy {
	p := domain.AutoscalingPolicy{Cluster: "lab", Group: "mnist", Role: "worker", Min: 1, Max: 8,
		Metrics: map[string]domain.ScalingMetric{
			"cpu": {
				Source:    domain.ScalingSource{Agent: &domain.AgentSource{Measure: domain.AgentCPUs}},
				Algorithm: domain.ScalingAlgorithm{Target: &domain.TargetAlgorithm{Value: 2}},
			},
		}}
	for _, change := range changes {
		change(&p)
	}
	return p
}

// onDestroy sets what happens to the count when a policy ends.
func onDestroy(rule domain.OnDestroy) func(p *domain.AutoscalingPolicy) {
	return func(p *domain.AutoscalingPolicy) { p.OnDestroy = rule }
}

// from sets the min of a policy.
func from(least int) func(p *domain.AutoscalingPolicy) {
	return func(p *domain.AutoscalingPolicy) { p.Min = least }
}

// count sets the number of workers of the group "mnist", as if a policy had done so.
func (f *fake) count(t *testing.T, n int) {
	t.Helper()
	doc, err := engine.Get[domain.GroupDocument](t.Context(), f, "mnist")
	must(t, err)
	doc.Counts["worker"] = n
	must(t, reconcile.Reconciler{Engine: f}.Update(within(t), withCounts(t, f, doc)))
}

// withCounts stores a document, and returns its specification.
func withCounts(t *testing.T, f *fake, doc domain.GroupDocument) domain.Group {
	t.Helper()
	_, err := engine.Put(t.Context(), f, doc)
	must(t, err)
	return doc.Spec
}

func TestPutPolicy(t *testing.T) {
	f, _ := applied(t, group(1, 1, uncounted))
	f.count(t, 3)
	e, calls := recorded(f)
	r := reconcile.Reconciler{Engine: e}
	put := func(spec domain.AutoscalingPolicy, created, wantAdopted bool) domain.AutoscalingPolicyDocument {
		t.Helper()
		adopted, err := r.PutPolicy(t.Context(), spec, created)
		if err != nil || adopted != wantAdopted {
			t.Fatalf("adopted %t, %v", adopted, err)
		}
		doc, err := r.Policy(t.Context(), "mnist", "worker")
		if err != nil || !doc.Spec.Equal(spec) || doc.Ending {
			t.Fatalf("%v, it is stored as %+v", err, doc)
		}
		return doc
	}
	first := put(policy(), true, false)
	if first.Revision != 1 || first.Before != 3 || first.ID == "" {
		t.Errorf("a new policy is stored as %+v", first)
	}
	if !slices.Contains(calls.made(), "StartController") {
		t.Errorf("without a controller nobody keeps to it: the calls are %v", calls.made())
	}
	if doc := put(policy(), true, true); doc.Revision != 1 || doc.ID != first.ID {
		t.Errorf("one that is adopted is stored as %+v", doc)
	}
	var exists *reconcile.PolicyExistsError
	if _, err := r.PutPolicy(t.Context(), policy(from(2)), true); !errors.As(err, &exists) ||
		!strings.Contains(err.Error(), "terraform import <address> lab/mnist/worker") {
		t.Errorf("another one: %v", err)
	}
	f.count(t, 5)
	if doc := put(policy(from(2)), false, false); doc.Revision != 2 || doc.Before != 3 || doc.ID != first.ID {
		t.Errorf("after a change it is stored as %+v", doc)
	}
	if doc := put(policy(from(2)), false, false); doc.Revision != 2 {
		t.Errorf("without a change it is stored as %+v", doc)
	}

	// A policy whose removal was interrupted is replaced, whatever its specification.
	doc := documents[domain.AutoscalingPolicyDocument](f)["mnist/worker"]
	doc.Ending = true
	set(f, doc)
	second := put(policy(from(4)), true, false)
	if second.Before != 3 || second.ID == first.ID {
		t.Errorf("a new one in the place of another that ends is stored as %+v", second)
	}
	// A deleted policy is created again.
	must(t, engine.Delete[domain.AutoscalingPolicyDocument](t.Context(), f, "mnist/worker"))
	if doc := put(policy(from(4)), false, false); doc.Before != 5 || doc.ID == second.ID {
		t.Errorf("one that was gone is stored as %+v", doc)
	}
}

// When two runs create a policy at once, one creates it and the other finds it.
func TestPutPolicyTwiceAtOnce(t *testing.T) {
	for name, test := range map[string]struct {
		other  domain.AutoscalingPolicy
		exists bool
	}{"the same": {policy(), false}, "another": {policy(from(2)), true}} {
		f, _ := applied(t, group(1, 1, uncounted))
		e, calls := recorded(f)
		calls.before = func(call string) error {
			if call == "Put policy" && len(documents[domain.AutoscalingPolicyDocument](f)) == 0 {
				_, err := engine.Put(t.Context(), f, domain.AutoscalingPolicyDocument{Spec: test.other})
				return err
			}
			return nil
		}
		adopted, err := reconcile.Reconciler{Engine: e}.PutPolicy(t.Context(), policy(), true)
		var exists *reconcile.PolicyExistsError
		if errors.As(err, &exists) != test.exists || adopted == test.exists {
			t.Errorf("%s: adopted %t, %v", name, adopted, err)
		}
	}
	f, r := applied(t, group(1, 1, uncounted))
	_, err := r.PutPolicy(t.Context(), policy(), true)
	must(t, err)
	e, calls := recorded(f)
	calls.before = func(call string) error {
		if call == "Put policy" {
			return engine.ErrConflict
		}
		return nil
	}
	if _, err := (reconcile.Reconciler{Engine: e}).PutPolicy(t.Context(), policy(from(2)),
		false); !errors.Is(err, engine.ErrConflict) {
		t.Errorf("a change on top of somebody else's: %v", err)
	}
}

func TestPutPolicyNeedsItsRole(t *testing.T) {
	f, r := applied(t, group(1, 1))
	for name, test := range map[string]struct {
		policy domain.AutoscalingPolicy
		says   string
	}{
		"a group": {
			policy(func(p *domain.AutoscalingPolicy) { p.Group = "cifar" }),
			`group: Unknown group: cluster "lab" has no group "cifar"; it has "mnist"`,
		},
		"a role": {
			policy(func(p *domain.AutoscalingPolicy) { p.Role = "chief" }),
			`role: Unknown role: group "mnist" has no role "chief"; it has "ps", "worker"`,
		},
		"without any number": {
			policy(),
			`role: Count managed twice: role "worker" of group "mnist" has roles["worker"].replicas = 1, and an autoscaling policy with min = 1 and max = 8`,
		},
		"that takes this few": {
			policy(func(p *domain.AutoscalingPolicy) { p.Min = 0 }),
			`min: Too few members: min is 0, but framework "tensorflow" needs at least 1 member of role "worker"`,
		},
	} {
		if _, err := r.PutPolicy(t.Context(), test.policy, true); err == nil ||
			!strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(documents[domain.AutoscalingPolicyDocument](f)) > 0 {
		t.Errorf("stored are %v", documents[domain.AutoscalingPolicyDocument](f))
	}
	f.Drop(engine.Key{Kind: domain.ClusterKind})
	if _, err := r.PutPolicy(t.Context(), policy(), true); !errors.Is(err, engine.ErrNotFound) ||
		!strings.Contains(err.Error(), `cluster "lab"`) {
		t.Errorf("without a cluster: %v", err)
	}
}

// A policy that ends leaves the count that on_destroy asks for.
func TestEndPolicy(t *testing.T) {
	for name, test := range map[string]struct {
		policy domain.AutoscalingPolicy
		want   int
	}{
		"kept, as nothing is said": {policy(from(4)), 5},
		"kept":                     {policy(from(4), onDestroy(domain.OnDestroyKeep)), 5},
		"restored":                 {policy(from(4), onDestroy(domain.OnDestroyRestore)), 3},
		"the least":                {policy(from(4), onDestroy(domain.OnDestroyMin)), 4},
		"more than there are":      {policy(from(6), onDestroy(domain.OnDestroyMin)), 6},
		"one that changes nothing": {
			policy(from(4), onDestroy(domain.OnDestroyMin), func(p *domain.AutoscalingPolicy) { p.DryRun = true }), 5,
		},
		"what was there is what it is": {policy(from(5), onDestroy(domain.OnDestroyMin)), 5},
	} {
		t.Run(name, func(t *testing.T) {
			f, r := applied(t, group(1, 1, uncounted))
			f.count(t, 3)
			_, err := r.PutPolicy(t.Context(), test.policy, true)
			must(t, err)
			f.count(t, 5)
			left, err := r.EndPolicy(within(t), "mnist", "worker")
			if err != nil || left != "" {
				t.Errorf("left %q, %v", left, err)
			}
			if doc, err := engine.Get[domain.GroupDocument](t.Context(), f, "mnist"); err != nil ||
				doc.Counts["worker"] != test.want {
				t.Errorf("the count is %d, want %d (%v)", doc.Counts["worker"], test.want, err)
			}
			if len(documents[domain.AutoscalingPolicyDocument](f)) > 0 {
				t.Errorf("stored are %v", documents[domain.AutoscalingPolicyDocument](f))
			}
			if left, err := r.EndPolicy(within(t), "mnist", "worker"); err != nil || left != "" {
				t.Errorf("once more: left %q, %v", left, err)
			}
		})
	}
}

// A policy ends even if there is nothing left to scale. Declared replicas are left alone.
func TestEndPolicyWithoutItsRole(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, f *fake, r reconcile.Reconciler){
		"no group": func(_ *testing.T, f *fake, _ reconcile.Reconciler) { drop[domain.GroupDocument](f) },
		"no cluster": func(t *testing.T, f *fake, _ reconcile.Reconciler) {
			must(t, f.Delete(t.Context(), engine.Key{Kind: domain.ClusterKind}))
		},
		"another role": func(t *testing.T, _ *fake, r reconcile.Reconciler) {
			must(t, r.Update(within(t), group(1, 0, onlyChief)))
		},
		"a number": func(t *testing.T, _ *fake, r reconcile.Reconciler) { must(t, r.Update(within(t), group(1, 2))) },
	} {
		f, r := applied(t, group(1, 1, uncounted))
		_, err := r.PutPolicy(t.Context(), policy(from(4), onDestroy(domain.OnDestroyMin)), true)
		must(t, err)
		change(t, f, r)
		left, err := r.EndPolicy(within(t), "mnist", "worker")
		if err != nil || left != "" || len(documents[domain.AutoscalingPolicyDocument](f)) > 0 {
			t.Errorf("%s: left %q, %v; stored are %v", name, left, err, documents[domain.AutoscalingPolicyDocument](f))
		}
	}
}

// EndPolicy may be interrupted after any of its calls, and the next one finishes, even if another run
// changes the policy meanwhile.
func TestEndPolicyDiesBetweenCalls(t *testing.T) {
	died := errors.New("died")
	for _, rule := range []domain.OnDestroy{domain.OnDestroyKeep, domain.OnDestroyMin} {
		for k := 0; ; k++ {
			f, r := applied(t, group(1, 1, uncounted))
			_, err := r.PutPolicy(t.Context(), policy(from(4), onDestroy(rule)), true)
			must(t, err)
			e, calls := recorded(f)
			changed := false
			calls.before = func(call string) error {
				if call == "Put policy" && !changed {
					changed = true
					_, err := r.PutPolicy(context.Background(), policy(from(3), onDestroy(rule)), false)
					return err
				}
				if len(calls.made()) > k {
					return died
				}
				return nil
			}
			_, err = reconcile.Reconciler{Engine: e}.EndPolicy(within(t), "mnist", "worker")
			if err != nil && !errors.Is(err, died) {
				t.Fatalf("%s, death after call %d, %v: %v", rule, k, calls.made(), err)
			}
			f.locks = map[string]engine.Holder{}
			left, err := r.EndPolicy(within(t), "mnist", "worker")
			if err != nil || left != "" || len(documents[domain.AutoscalingPolicyDocument](f)) > 0 {
				t.Fatalf("%s, after the death after call %d: left %q, %v; stored are %v", rule, k, left, err,
					documents[domain.AutoscalingPolicyDocument](f))
			}
			want := map[domain.OnDestroy]int{domain.OnDestroyKeep: 1, domain.OnDestroyMin: 3}[rule]
			if doc, err := engine.Get[domain.GroupDocument](t.Context(), f, "mnist"); err != nil ||
				changed && doc.Counts["worker"] != want {
				t.Errorf("%s, after the death after call %d: the count is %d, want %d (%v)", rule, k,
					doc.Counts["worker"], want, err)
			}
			if len(calls.made()) <= k {
				break
			}
		}
	}
}

// A group that an apply holds can't be scaled: the policy stops deciding, and EndPolicy is repeated.
func TestEndPolicyOfGroupThatIsApplied(t *testing.T) {
	f, r := applied(t, group(1, 1, uncounted))
	_, err := r.PutPolicy(t.Context(), policy(from(4), onDestroy(domain.OnDestroyMin)), true)
	must(t, err)
	f.locks[reconcile.GroupLock("mnist")] = engine.Holder{Who: "ops@bastion", Process: 7}
	var locked *engine.LockedError
	if _, err := r.EndPolicy(within(t), "mnist", "worker"); !errors.As(err, &locked) ||
		!documents[domain.AutoscalingPolicyDocument](f)["mnist/worker"].Ending {
		t.Errorf("%v; stored are %+v", err, documents[domain.AutoscalingPolicyDocument](f))
	}
	f.unlock(reconcile.GroupLock("mnist"))
	if left, err := r.EndPolicy(within(t), "mnist", "worker"); err != nil || left != "" ||
		len(documents[domain.AutoscalingPolicyDocument](f)) > 0 {
		t.Errorf("left %q, %v; stored are %v", left, err, documents[domain.AutoscalingPolicyDocument](f))
	}
}

// Destroying a group removes the policies for its roles, and no others.
func TestDestroyEndsPolicies(t *testing.T) {
	f, r := applied(t, group(1, 1, uncounted))
	must(t, r.Update(within(t), group(1, 1, uncounted, func(g *domain.Group) { g.Name = "other" })))
	_, err := r.PutPolicy(t.Context(), policy(), true)
	must(t, err)
	_, err = r.PutPolicy(t.Context(), policy(func(p *domain.AutoscalingPolicy) { p.Group = "other" }), true)
	must(t, err)
	e, calls := recorded(f)
	must(t, reconcile.Reconciler{Engine: e}.Destroy(within(t), "mnist"))
	made := calls.made()
	if diff := cmp.Diff([]string{"List policy", "Delete policy", "List learned-model", "Prune", "Delete group"},
		made[len(made)-5:]); diff != "" {
		t.Errorf("the last calls (-want +got):\n%s", diff)
	}
	if _, other := documents[domain.AutoscalingPolicyDocument](f)["other/worker"]; !other ||
		len(documents[domain.AutoscalingPolicyDocument](f)) != 1 {
		t.Errorf("stored are %v", documents[domain.AutoscalingPolicyDocument](f))
	}
}
