package autoscale

import (
	"maps"
	"slices"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/qmodel"
)

// validateLearned finds models that can't be read, and those whose metrics don't match, and returns the valid ones, by
// metric name.
func validateLearned(ps *domain.Problems, p domain.AutoscalingPolicy) map[string]*qmodel.Model {
	models := map[string]*qmodel.Model{}
	for _, name := range slices.Sorted(maps.Keys(p.Metrics)) {
		a, at := p.Metrics[name].Algorithm.Learned, domain.Path{"metrics", domain.Key(name), "algorithm", "learned"}
		if a == nil {
			continue
		}
		validateObservedFeatures(ps, at, *a)
		if a.Model.Digest == "" {
			continue // reported already
		}
		model, err := qmodel.Parse([]byte(a.Model.Text))
		if err != nil {
			ps.Add(at.At("model"), "Invalid model", "%v", err)
			continue
		}
		validateModelFeatures(ps, at, *a, model, p.Hooks)
		models[name] = model
	}
	return models
}

// validateObservedFeatures checks the observed features, whatever the model.
func validateObservedFeatures(ps *domain.Problems, at domain.Path, a domain.LearnedAlgorithm) {
	observed := []string{}
	for _, f := range qmodel.Features {
		if f.Observed {
			observed = append(observed, f.Name)
		}
	}
	for _, feature := range slices.Sorted(maps.Keys(a.Observes)) {
		if !slices.Contains(observed, feature) {
			ps.Add(at.At("observes", domain.Key(feature)), "Unknown feature",
				"%q is not a feature computed from another metric; use one of %q", feature, observed)
		}
	}
	for _, needs := range []struct {
		feature       int
		setting, what string
		given         bool
	}{
		{qmodel.P99, "latency_bound", "the latency that is allowed, in the unit of metric", a.LatencyBound > 0},
		{
			qmodel.LagGrowth, "lag_capacity", "how much lag a member works off in a second, in the unit of metric",
			a.LagCarried() > 0,
		},
	} {
		feature := qmodel.Features[needs.feature].Name
		if metric, observes := a.Observes[feature]; observes && !needs.given {
			ps.Add(at.At(needs.setting), "Missing "+needs.setting,
				"feature %q needs it: %s %q; set it to a number above 0", feature, needs.what, metric)
			ps.DecidedBy([]domain.Path{at.At(needs.setting), at.At("observes"), at.At("per"), at.At("capacity")})
		}
	}
}

// validateModelFeatures compares the features of a model with those it is given.
func validateModelFeatures(
	ps *domain.Problems, at domain.Path, a domain.LearnedAlgorithm, model *qmodel.Model, hooks domain.ScalingHooks,
) {
	hooked := hooks.BeforeRemoval != nil || hooks.AfterAddition != nil
	for i, f := range qmodel.Features {
		metric, observes := a.Observes[f.Name]
		switch {
		case !f.Observed:
		case observes && !model.Has(i):
			ps.Add(at.At("observes", domain.Key(f.Name)), "Unused feature", "the model does not use %q, so metric %q "+
				"would be observed for nothing; it uses %q: leave it out, or train a model with it",
				f.Name, metric, model.Features)
			ps.DecidedBy([]domain.Path{at.At("observes"), at.At("model")})
		case !observes && model.Has(i) && (i != qmodel.Reassigning || !hooked):
			ps.Add(at.At("observes"), "Missing feature", "the model uses %q (%s), but no metric is set for it; set "+
				"observes = { %s = \"<name of a metric>\" }, or train a model without", f.Name, f.Doc, f.Name)
			ps.DecidedBy([]domain.Path{at.At("observes"), at.At("model"), {"hooks"}})
		}
	}
}
