package topology

import (
	"slices"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// frameworks is the table of the known frameworks: one line each, a file each.
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

// framework describes the groups of one way to train.
type framework struct {
	name string
	// roles are the roles it knows. Of those that complete, the first that has members provides the chief, as
	// its member 0. Without any, the group's roles are the user's own, see [chiefCandidates].
	roles []role
	// needs lists sets of roles: of each set, one role must have members.
	needs [][]string
	// when is the rule of completion where the user gives none; chief turns to never where there is none.
	when domain.When
	// env returns what the framework adds to the environment of each member; what members share is made once.
	env func(l *Layout) func(m domain.Member) map[string]string
	// files returns what each member finds in its files folder.
	files func(l *Layout) []domain.File
}

// role describes a role of a framework.
type role struct {
	name string
	// most bounds the number of members; 0 sets no bound.
	most int
	// interchangeable members have no identity: nobody else may depend on their addresses.
	interchangeable bool
	// serves tells that its members run until they are stopped: they complete no group.
	serves bool
	// fixed tells that members agree on their number when they start: none joins or leaves those that run.
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

// lookup returns the framework of that name. Where there is none, it returns one that adds nothing and never
// completes.
func lookup(name string) (framework, bool) {
	for _, f := range frameworks {
		if f.name == name {
			return f, true
		}
	}
	return framework{when: domain.WhenNever}, false
}

// role returns the description of a role; one that the framework does not know is a plain one.
func (f framework) role(name string) role {
	for _, r := range f.roles {
		if r.name == name {
			return r
		}
	}
	return role{name: name}
}

// roleNames returns the names of the roles it knows; none where they are the user's own.
func (f framework) roleNames() []string {
	names := make([]string, len(f.roles))
	for i, r := range f.roles {
		names[i] = r.name
	}
	return names
}
