package topology

import (
	"slices"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Bounds returns how many members the group's framework lets a role have: least is 1 where it can't do without the
// role, given the others that there are, and most is 0 where it sets no bound.
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
