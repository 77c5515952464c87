package spec

import (
	"encoding/json"
	"fmt"

	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Record is the part of a specification that can't be read back from its service, which carries it in [LabelSpec].
type Record struct {
	// Seal is the digest of everything that could be read back when the service was rendered, see [Seal].
	Seal    string             `json:"seal"`
	Host    string             `json:"host,omitempty"`
	Address string             `json:"address"`
	Restart domain.RestartRule `json:"restart"`
	// Image is the user's. Reference is what the hosts were told to run, if that differs, and Content its content
	// digest, if known.
	Image      string            `json:"image"`
	Reference  string            `json:"reference,omitempty"`
	Content    string            `json:"content,omitempty"`
	PullPolicy domain.PullPolicy `json:"pull_policy,omitempty"`
	Network    string            `json:"network,omitempty"`
	// Placement are the placement rules of a member without a host, and Constraints the service's rendered constraints.
	Placement domain.Placement `json:"placement,omitzero"`
	// Update is how members that share a service are updated.
	Update      domain.Update `json:"update,omitzero"`
	Constraints []string      `json:"constraints,omitempty"`
	// Configs and Secrets map targets to names.
	Configs map[string]string        `json:"configs,omitempty"`
	Secrets map[string]secretVersion `json:"secrets,omitempty"`
}

// secretVersion is the name of a secret, and its version.
type secretVersion struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// RecordOf returns the record that a service carries, and whether there is a readable one.
func RecordOf(spec swarm.ServiceSpec) (r Record, found bool) {
	if err := json.Unmarshal([]byte(spec.Labels[LabelSpec]), &r); err != nil {
		return Record{}, false
	}
	return r, true
}

// put stores the record in the service's label.
func (r Record) put(spec *swarm.ServiceSpec) { spec.Labels[LabelSpec] = encode(r) }

// reference returns what the hosts were told to run.
func (r Record) reference() string {
	if r.Reference != "" {
		return r.Reference
	}
	return r.Image
}

// encode returns the JSON of a value that is made of maps, slices, structs, strings and numbers, which never fails.
func encode(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", value, err))
	}
	return string(text)
}
