package domain

// OrOwn returns an attribute that decides about a role and, if it is the group's, the role's attributes that would
// override it.
func OrOwn(role string, at Path) []Path {
	if at[0] == "roles" {
		return []Path{at}
	}
	own := Path{"roles", Key(role)}
	inputs := []Path{at, own.At(at...)}
	if at[0] == "args" {
		inputs = append(inputs, own.At("command")) // a role's own command drops the group's args
	}
	return inputs
}
