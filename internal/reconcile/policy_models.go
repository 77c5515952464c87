package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// PolicyModels returns a policy with the stored texts of its models. A missing model is [engine.ErrNotFound].
func (r Reconciler) PolicyModels(ctx context.Context, spec domain.AutoscalingPolicy) (domain.AutoscalingPolicy, error) {
	texts := map[string]string{}
	for digest := range spec.Models() {
		doc, err := engine.Get[domain.LearnedModelDocument](ctx, r.Engine, domain.LearnedModelKey(spec.Key(), digest))
		if err != nil {
			return spec, fmt.Errorf("model %.12s of autoscaling policy %q: %w", digest, spec.Key(), err)
		}
		if domain.NewLearnedModel(doc.Text).Digest != digest {
			return spec, fmt.Errorf(
				"stored model %.12s of autoscaling policy %q has another text; change the model, or "+
					"recreate the policy",
				digest, spec.Key(),
			)
		}
		texts[digest] = doc.Text
	}
	return spec.WithModels(texts), nil
}

// putModels stores the texts of a policy's models that are missing, before its document refers to them.
func (r Reconciler) putModels(ctx context.Context, spec domain.AutoscalingPolicy) error {
	for digest, model := range spec.Models() {
		doc := domain.LearnedModelDocument{Policy: spec.Key(), Digest: digest, Text: model.Text}
		_, err := engine.Get[domain.LearnedModelDocument](ctx, r.Engine, doc.Key())
		if errors.Is(err, engine.ErrNotFound) {
			_, err = engine.Put(ctx, r.Engine, doc)
		}
		if err != nil && !errors.Is(err, engine.ErrConflict) { // someone else has just stored the same text
			return err
		}
	}
	return nil
}

// dropModels removes all models of a policy except kept.
func (r Reconciler) dropModels(ctx context.Context, policy string, kept map[string]domain.LearnedModel) error {
	return r.deleteModels(ctx, func(doc domain.LearnedModelDocument) bool {
		_, has := kept[doc.Digest]
		return doc.Policy == policy && !has
	})
}

// dropGroupModels removes the models of all policies for roles of a group, including those of an interrupted create.
func (r Reconciler) dropGroupModels(ctx context.Context, group string) error {
	return r.deleteModels(ctx, func(doc domain.LearnedModelDocument) bool {
		return strings.HasPrefix(doc.Policy, domain.PolicyKey(group, ""))
	})
}

func (r Reconciler) deleteModels(ctx context.Context, among func(domain.LearnedModelDocument) bool) error {
	stored, err := engine.List[domain.LearnedModelDocument](ctx, r.Engine)
	if err != nil {
		return err
	}
	for key, doc := range stored {
		if !among(doc) {
			continue
		}
		if err := engine.Delete[domain.LearnedModelDocument](ctx, r.Engine, key); err != nil {
			return err
		}
	}
	return nil
}
