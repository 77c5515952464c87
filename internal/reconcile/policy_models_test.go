package reconcile_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// asking gives a policy metrics with learned models, by name; the texts can be anything here.
func asking(models map[string]string) func(p *domain.AutoscalingPolicy) {
	return func(p *domain.AutoscalingPolicy) {
		for name, text := range models {
			m := p.Metrics["cpu"]
			m.Algorithm = domain.ScalingAlgorithm{
				Learned: &domain.LearnedAlgorithm{Model: domain.NewLearnedModel(text)},
			}
			p.Metrics[name] = m
		}
	}
}

// models returns the stored texts by policy, sorted.
func (f *fake) models() map[string][]string {
	texts := map[string][]string{}
	for _, doc := range documents[domain.LearnedModelDocument](f) {
		texts[doc.Policy] = append(texts[doc.Policy], doc.Text)
		slices.Sort(texts[doc.Policy])
	}
	return texts
}

func (f *fake) wantModels(t *testing.T, when string, want map[string][]string) {
	t.Helper()
	if diff := cmp.Diff(want, f.models()); diff != "" {
		t.Errorf("%s, the models that are stored (-want +got):\n%s", when, diff)
	}
}

// TestPolicyModels: a policy's models are stored apart from its document, which only refers to them. They exist as long
// as it does, and go with its group.
func TestPolicyModels(t *testing.T) {
	f, r := applied(t, group(1, 1, uncounted))
	put := func(models map[string]string, created bool) {
		t.Helper()
		_, err := r.PutPolicy(t.Context(), policy(asking(models)), created)
		must(t, err)
	}
	put(map[string]string{"rate": "one", "lag": "two", "again": "one"}, true)
	f.wantModels(t, "once created", map[string][]string{"mnist/worker": {"one", "two"}})
	stored, err := r.Policy(t.Context(), "mnist", "worker")
	must(t, err)
	for _, m := range stored.Spec.Models() {
		if m.Text != "" {
			t.Errorf("the document has the text %q", m.Text)
		}
	}
	spec, err := r.PolicyModels(t.Context(), stored.Spec)
	must(t, err)
	if got := spec.Metrics["lag"].Algorithm.Learned.Model.Text; got != "two" ||
		stored.Spec.Metrics["lag"].Algorithm.Learned.Model.Text != "" {
		t.Errorf("it is read with the model %q", got)
	}

	put(map[string]string{"rate": "three"}, false)
	f.wantModels(t, "once changed", map[string][]string{"mnist/worker": {"three"}})
	drop[domain.LearnedModelDocument](f)
	if _, err := r.PolicyModels(t.Context(),
		policy(asking(map[string]string{"rate": "three"}))); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("without its model it is read: %v", err)
	}
	put(map[string]string{"rate": "three"}, false)
	f.wantModels(t, "applied again after somebody removed it", map[string][]string{"mnist/worker": {"three"}})

	doc := documents[domain.LearnedModelDocument](f)
	for _, d := range doc {
		d.Text = "another"
		_, err := engine.Put(t.Context(), f, d)
		must(t, err)
	}
	if _, err := r.PolicyModels(t.Context(), policy(asking(map[string]string{"rate": "three"}))); err == nil ||
		!strings.Contains(err.Error(), "another text") {
		t.Errorf("another text is read as its model: %v", err)
	}

	_, err = engine.Put(t.Context(), f,
		domain.LearnedModelDocument{Policy: "mnist/chief", Digest: domain.NewLearnedModel("left").Digest, Text: "left"})
	must(t, err)
	_, err = engine.Put(t.Context(), f, domain.LearnedModelDocument{
		Policy: "mnist-2/chief", Digest: domain.NewLearnedModel("other").Digest, Text: "other",
	})
	must(t, err)
	must(t, r.Destroy(within(t), "mnist"))
	f.wantModels(t, "without the group", map[string][]string{"mnist-2/chief": {"other"}})
}

// TestPolicyModelsAfterDeaths: storing or ending a policy may be interrupted after any call. A document never refers to
// a missing model, and the next apply or destroy leaves no unused ones.
func TestPolicyModelsAfterDeaths(t *testing.T) {
	died := errors.New("died")
	old, changed := policy(asking(map[string]string{"rate": "one"})), policy(asking(map[string]string{"rate": "two"}))
	for name, run := range map[string]func(r reconcile.Reconciler) error{
		"create": func(r reconcile.Reconciler) error {
			_, err := r.PutPolicy(t.Context(), old, true)
			return err
		},
		"change": func(r reconcile.Reconciler) error {
			_, err := r.PutPolicy(t.Context(), changed, false)
			return err
		},
		"end": func(r reconcile.Reconciler) error {
			_, err := r.EndPolicy(within(t), "mnist", "worker")
			return err
		},
	} {
		for k := 0; ; k++ {
			f, r := applied(t, group(1, 1, uncounted))
			if name != "create" {
				_, err := r.PutPolicy(t.Context(), old, true)
				must(t, err)
			}
			e, calls := recorded(f)
			calls.before = func(string) error {
				if len(calls.made()) > k {
					return died
				}
				return nil
			}
			if err := run(reconcile.Reconciler{Engine: e}); err != nil && !errors.Is(err, died) {
				t.Fatalf("%s, death after call %d: %v", name, k, err)
			}
			f.locks = map[string]engine.Holder{}
			if doc, err := r.Policy(t.Context(), "mnist", "worker"); err == nil && !doc.Ending {
				if _, err := r.PolicyModels(t.Context(), doc.Spec); err != nil {
					t.Errorf("%s, after the death after call %d: %v", name, k, err)
				}
			}
			must(t, run(r))
			var want []string
			if spec := map[string]domain.AutoscalingPolicy{
				"create": old, "change": changed,
			}[name]; spec.Metrics != nil {
				for m := range maps.Values(spec.Models()) {
					want = append(want, m.Text)
				}
			}
			if got := f.models()["mnist/worker"]; !slices.Equal(got, want) {
				t.Errorf("%s, repeated after the death after call %d: stored are %q, want %q", name, k, got, want)
			}
			if len(calls.made()) <= k {
				break
			}
		}
	}
}
