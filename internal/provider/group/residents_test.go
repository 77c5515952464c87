package group

import (
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

func TestRestartsByController(t *testing.T) {
	supervises, schedules := engine.Traits{Restarts: true}, engine.Traits{Schedules: true}
	const member, whole = domain.ScopeMember, domain.ScopeGroup
	for name, c := range map[string]struct {
		traits engine.Traits
		scope  domain.RestartScope
		role   string
		want   bool
	}{
		"an engine that doesn't restart":          {engine.Traits{}, member, "master", true},
		"an engine that restarts":                 {supervises, member, "master", false},
		"a pinned role of one that schedules":     {schedules, member, "master", true},
		"an interchangeable role there":           {schedules, member, "worker", false},
		"a whole group, an engine that restarts":  {supervises, whole, "master", true},
		"a whole group, an engine that schedules": {schedules, whole, "worker", true},
		"a whole group, a role that never does":   {supervises, whole, "once", false},
		"a role that never restarts":              {engine.Traits{}, member, "once", false},
	} {
		t.Run(name, func(t *testing.T) {
			spec := domain.Group{Framework: "spark", RestartScope: c.scope, Roles: map[string]domain.Role{
				"master": {}, "worker": {}, "once": {Restart: domain.Restart{Condition: domain.RestartNever}},
			}}
			if got := restartsByController(c.traits, spec, c.role); got != c.want {
				t.Errorf("the controller restarts: %t, want %t", got, c.want)
			}
		})
	}
}
