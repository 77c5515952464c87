package domain

// OrOwn are an attribute that decides about a role and, where it is the group's, those of the role that would take its
// place.
func OrOwn(role string, at Path) []Path {
	if at[0] == "roles" {
		return []Path{at}
	}
	own := Path{"roles", Key(role)}
	inputs := []Path{at, own.At(at...)}
	if at[0] == "args" {
		inputs = append(inputs, own.At("command")) // a role's own command drops the group's arguments
	}
	return inputs
}
