package spec

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"maps"
	"slices"

	"github.com/docker/docker/api/types/swarm"
)

// Sealed is the record of what a service was rendered from, and whether the service still matches it.
type Sealed struct {
	Record Record
	// Broken means that somebody else changed the service since it was rendered and started.
	Broken bool
}

func sealedOf(service swarm.Service) Sealed {
	r, found := RecordOf(service.Spec)
	return Sealed{
		Record: r,
		Broken: service.Spec.Labels[LabelStaged] == "" && (!found || r.Seal != sealWith(service.Spec, r, true)),
	}
}

// SealsOf returns the records of members' services by service ID. A plan computes them while Terraform is busy, so it
// uses only one processor.
func SealsOf(services []swarm.Service) map[string]Sealed {
	seals := make(map[string]Sealed, len(services))
	for _, service := range services {
		if IdentityOf(service).Group != "" {
			seals[service.ID] = sealedOf(service)
		}
	}
	return seals
}

// Seal returns the digest of a service's specification as it is read back. Settings that the schema does not know are
// not included.
func Seal(spec swarm.ServiceSpec) string {
	r, recorded := RecordOf(spec)
	return sealWith(spec, r, recorded)
}

// sealWith is Seal for a service whose record was already read.
func sealWith(spec swarm.ServiceSpec, r Record, recorded bool) string {
	found := readWith(spec, r, recorded, sealing{})
	digest := sha256.New()
	// As text, since JSON is slow for the environment, which contains the addresses of all members.
	for _, name := range slices.Sorted(maps.Keys(found.Env)) {
		_, _ = io.WriteString(digest, name+"="+found.Env[name]+"\x00") // writing to a hash never fails
	}
	found.Env = nil
	// implied by the identity; digests made before these fields existed stay valid
	found.Scheduling, found.Shared = "", false
	_, _ = io.WriteString(digest, encode(found))
	return hex.EncodeToString(digest.Sum(nil)[:16])
}
