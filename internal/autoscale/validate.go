package autoscale

import (
	"maps"
	"slices"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/qmodel"
)

// Validate returns what is wrong with a policy, regardless of its cluster: what [domain.AutoscalingPolicy.Validate]
// finds, invalid cron expressions and unknown time zones in schedules, and models that can't be read or don't match
// their metrics.
func Validate(p domain.AutoscalingPolicy) domain.Problems {
	ps, _ := validate(p)
	return ps
}

// validate also returns the models of a policy, by metric name.
func validate(p domain.AutoscalingPolicy) (domain.Problems, map[string]*qmodel.Model) {
	ps := p.Validate()
	models := validateLearned(&ps, p)
	for _, name := range slices.Sorted(maps.Keys(p.Schedules)) {
		s, at := p.Schedules[name], domain.Path{"schedules", domain.Key(name)}
		for _, edge := range []struct{ name, value string }{{"start", s.Start}, {"end", s.End}} {
			// A missing one is reported already.
			if _, err := parseCron(edge.value); err != nil && strings.TrimSpace(edge.value) != "" {
				ps.Add(at.At(edge.name), "Invalid time", "%v", err)
			}
		}
		if _, err := timeZone(s.TimeZone); err != nil {
			ps.Add(at.At("time_zone"), "Unknown time zone", "%v", err)
		}
	}
	return ps, models
}
