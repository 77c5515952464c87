package topology

import (
	"slices"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Bounds returns how many members the group's framework allows a role. least is 1 if it needs the role, given the
// group's other roles; most is 0 if there is no maximum.
func Bounds(g domain.Group, role string) (least, most int) {
	f, _ := lookup(g.Framework)
	for _, set := range f.needs {
		others := slices.ContainsFunc(set, func(name string) bool {
			other, found := g.Roles[name]
			return found && name != role && (other.Replicas == nil || *other.Replicas > 0)
		})
		if slices.Contains(set, role) && !others {
			least = 1
		}
	}
	return least, f.role(role).most
}
