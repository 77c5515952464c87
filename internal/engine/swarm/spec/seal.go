package spec

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"maps"
	"slices"

	"github.com/docker/docker/api/types/swarm"
)

// Sealed is what a service carries of what it was rendered from, and whether it is that still.
type Sealed struct {
	Record Record
	// Broken says that somebody else changed the service since it was rendered and started.
	Broken bool
}

func sealedOf(service swarm.Service) Sealed {
	r, found := RecordOf(service.Spec)
	return Sealed{Record: r, Broken: service.Spec.Labels[LabelStaged] == "" && (!found || r.Seal != sealWith(service.Spec, r, true))}
}

// SealsOf returns what the services of members carry of what they were rendered from, by the services' IDs. A plan does
// this while Terraform is at work, and leaves it the other processors.
func SealsOf(services []swarm.Service) map[string]Sealed {
	seals := make(map[string]Sealed, len(services))
	for _, service := range services {
		if IdentityOf(service).Group != "" {
			seals[service.ID] = sealedOf(service)
		}
	}
	return seals
}

// Seal returns the digest of a service's specification as it is read back. What the schema does not know does not
// enter.
func Seal(spec swarm.ServiceSpec) string {
	r, recorded := RecordOf(spec)
	return sealWith(spec, r, recorded)
}

// sealWith is Seal for a service whose record has been read.
func sealWith(spec swarm.ServiceSpec, r Record, recorded bool) string {
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
