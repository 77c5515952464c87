package meter

import (
	"fmt"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// partKey identifies a role of a group.
type partKey struct{ group, role string }

// part is the observed state of a role.
type part struct {
	document domain.GroupDocument
	role     string
	// running are the running members, and unready the names of those that will run, both by index. Members that have
	// ended or are being removed are in neither.
	running []*domain.Observed
	unready []string
	// unknown is why nothing is known of the role, or "".
	unknown string
}

// part returns the state of a role of a group.
func (r *reading) part(group, role string) *part {
	key := partKey{group, role}
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.parts[key]; known != nil {
		return known
	}
	if r.parts == nil {
		r.parts = map[partKey]*part{}
	}
	p := newPart(r.observation, group, role)
	r.parts[key] = p
	return p
}

func newPart(observation Observation, group, role string) *part {
	document, found := observation.Groups[group]
	if !found {
		return &part{unknown: fmt.Sprintf("there is no group %q", group)}
	}
	count, found := document.Counts[role]
	if !found {
		return &part{unknown: fmt.Sprintf("group %q has no role %q", group, role)}
	}
	p := &part{document: document, role: role}
	observed := make(map[int]*domain.Observed, count)
	members := observation.Members[group]
	for i := range members {
		if members[i].Role == role {
			observed[members[i].Index] = &members[i]
		}
	}
	for _, index := range document.Indexes(role) {
		o, found := observed[index]
		switch {
		case !found || o.Run < document.MinRun:
			p.unready = append(p.unready, domain.MemberName(group, role, index))
		case o.State == domain.StateRunning:
			p.running = append(p.running, o)
		case !o.State.Ended():
			p.unready = append(p.unready, o.Name)
		}
	}
	return p
}
