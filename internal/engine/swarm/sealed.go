package swarm

import "github.com/docker/docker/api/types/swarm"

// sealed is what a service carries of what it was rendered from, and whether it is that still.
type sealed struct {
	record record
	// broken says that somebody else changed the service since it was rendered and started.
	broken bool
}

func sealedOf(service swarm.Service) sealed {
	r, found := recordOf(service.Spec)
	return sealed{record: r, broken: service.Spec.Labels[labelStaged] == "" && (!found || r.Seal != sealWith(service.Spec, r, true))}
}

// sealsOf returns what the services of members carry, by the services' IDs. A plan does this while Terraform is at work, and leaves it the other
// processors.
func sealsOf(services []swarm.Service) map[string]sealed {
	seals := make(map[string]sealed, len(services))
	for _, service := range services {
		if identityOf(service).group != "" {
			seals[service.ID] = sealedOf(service)
		}
	}
	return seals
}
