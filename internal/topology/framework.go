package topology

import (
	"slices"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// frameworks is the table of known frameworks. Each has one line here and one file.
var frameworks = []framework{
	jax,
	mpi,
	none,
	pytorch,
	ray,
	spark,
	tensorflow,
	tensorflowV1,
}

// framework describes how groups train with one framework.
type framework struct {
	name string
	// roles are the roles that the framework knows. The chief is member 0 of the first role with members among those
	// that complete; without any roles, the group's are the user's own, see [chiefCandidates].
	roles []role
	// needs lists sets of roles. At least one role of each set must have members.
	needs [][]string
	// when is the default completion rule; WhenChief becomes WhenNever if there is no chief.
	when domain.When
	// env returns a function for what the framework adds to each member's environment. What members share is computed
	// once.
	env func(l *Layout) func(m domain.Member) map[string]string
	// files returns what each member finds in its files folder.
	files func(l *Layout) []domain.File
}

// role describes a role of a framework.
type role struct {
	name string
	// most limits the number of members; 0 means no limit.
	most int
	// interchangeable members have no identity: no other member may depend on their addresses.
	interchangeable bool
	// serves means that members run until they are stopped and complete no group.
	serves bool
	// fixed means that members agree on their number when they start: none can join or leave running ones.
	fixed bool
}

// Names returns the names of the known frameworks, sorted.
func Names() []string {
	names := make([]string, len(frameworks))
	for i, f := range frameworks {
		names[i] = f.name
	}
	slices.Sort(names)
	return names
}

// lookup returns the framework with this name. If there is none, it returns one that adds nothing and never completes.
func lookup(name string) (framework, bool) {
	for _, f := range frameworks {
		if f.name == name {
			return f, true
		}
	}
	return framework{when: domain.WhenNever}, false
}

// role returns the description of a role. An unknown role has no special properties.
func (f framework) role(name string) role {
	for _, r := range f.roles {
		if r.name == name {
			return r
		}
	}
	return role{name: name}
}

// roleNames returns the names of the roles that it knows; none if they are the user's own.
func (f framework) roleNames() []string {
	names := make([]string, len(f.roles))
	for i, r := range f.roles {
		names[i] = r.name
	}
	return names
}
