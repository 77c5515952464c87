package members

import (
	"context"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
)

// Preflight returns what a Swarm can't run of the specifications.
func (e Members) Preflight(_ context.Context, specs []domain.MemberSpec) (domain.Problems, error) {
	var problems domain.Problems
	for _, spec := range specs {
		at := domain.Path{"roles", domain.Key(spec.Role)}
		if spec.Image == "" {
			problems.Add(at.At("image"), "Missing image",
				"engine %q requires an image: set one for role %q or for the group", dockerapi.EngineName, spec.Role)
		}
	}
	return problems, nil
}
