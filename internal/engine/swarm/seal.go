package swarm

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"maps"
	"slices"

	"github.com/docker/docker/api/types/swarm"
)

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

// seal returns the digest of a service's specification as it is read back. What the schema does not know does not enter.
func seal(spec swarm.ServiceSpec) string {
	r, recorded := recordOf(spec)
	return sealWith(spec, r, recorded)
}

// sealWith is seal for a service whose record has been read.
func sealWith(spec swarm.ServiceSpec, r record, recorded bool) string {
	found := readWith(spec, r, recorded, sealing{})
	digest := sha256.New()
	// As text and not as JSON, which takes long for the environment: it has the addresses of all members.
	for _, name := range slices.Sorted(maps.Keys(found.Env)) {
		_, _ = io.WriteString(digest, name+"="+found.Env[name]+"\x00") // a digest never fails to be written to
	}
	found.Env = nil
	found.Scheduling, found.Shared = "", false // the identity tells, and a digest made before they were there still holds
	_, _ = io.WriteString(digest, encode(found))
	return hex.EncodeToString(digest.Sum(nil)[:16])
}
