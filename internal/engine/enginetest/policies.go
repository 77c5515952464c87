package enginetest

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// store stores a cluster in which nothing runs.
func (h Harness) store(t *testing.T, e engine.Engine) {
	t.Helper()
	_, err := e.PutCluster(t.Context(), domain.ClusterDocument{Spec: domain.Cluster{Name: h.lab, Engine: e.Traits().Name}})
	must(t, err)
}

// policy returns a policy of a role of the group h.group.
func (h Harness) policy(role string, most int) domain.AutoscalingPolicyDocument {
	return domain.AutoscalingPolicyDocument{Spec: domain.AutoscalingPolicy{Cluster: h.lab, Group: h.group, Role: role, Min: 1, Max: most}}
}

// testPolicies shows that documents of policies are kept by group and role, and that a change of one is reported.
func testPolicies(t *testing.T, h Harness) {
	ctx := t.Context()
	e := h.Open(t, h.lab)
	if _, err := e.PutPolicy(ctx, h.policy("worker", 4)); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("a policy without a cluster: %v, not ErrNotFound", err)
	}
	h.store(t, e)
	wantPolicies := func(when string, want ...domain.AutoscalingPolicyDocument) {
		t.Helper()
		stored := map[string]domain.AutoscalingPolicyDocument{}
		for _, doc := range want {
			stored[doc.Spec.Key()] = doc
		}
		read, err := e.Policies(ctx)
		must(t, err)
		if diff := cmp.Diff(stored, read); diff != "" {
			t.Errorf("%s, the policies (-stored +read):\n%s", when, diff)
		}
	}
	wantPolicies("before there are any")
	worker, err := e.PutPolicy(ctx, h.policy("worker", 4))
	must(t, err)
	evaluator, err := e.PutPolicy(ctx, h.policy("evaluator", 2))
	must(t, err)
	if worker.Revision != 1 || worker.Version != domain.DocumentVersion {
		t.Errorf("a new policy is stored as %+v", worker)
	}
	wantPolicies("of two roles", worker, evaluator)
	groups, err := e.Groups(ctx)
	must(t, err)
	pools, err := e.GPUPools(ctx)
	must(t, err)
	if len(groups) != 0 || len(pools) != 0 {
		t.Errorf("beside policies, the groups are %+v and the pools %+v", groups, pools)
	}

	watching, end := context.WithCancel(ctx)
	defer end()
	events, err := e.Watch(watching)
	must(t, err)
	oneWins(t, func() error {
		_, err := e.PutPolicy(ctx, worker)
		return err
	})
	awaitEvent(t, events, "the change of a policy")
	worker.Revision++
	wantPolicies("after a change", worker, evaluator)

	must(t, e.DeletePolicy(ctx, worker.Spec.Key()))
	must(t, e.DeletePolicy(ctx, worker.Spec.Key()))
	wantPolicies("after the end of one", evaluator)
	must(t, e.DeleteCluster(ctx))
	h.store(t, e)
	wantPolicies("in a new cluster of the name")
}
