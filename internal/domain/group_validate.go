package domain

import (
	"maps"
	"slices"
	"strings"
)

// Validate returns what is wrong with a group independently of its framework: names, ranges, and values that contradict
// each other.
func (g Group) Validate() Problems {
	var ps Problems
	CheckName(&ps, Path{"cluster", "name"}, "cluster", g.Cluster)
	CheckName(&ps, Path{"name"}, "group", g.Name)
	oneOf(&ps, Path{"restart_scope"}, "restart scope", g.RestartScope, RestartScopes)
	oneOf(&ps, Path{"wait_for"}, "phase to wait for", g.WaitFor, WaitFors)
	validateTemplate(&ps, Path{}, g.Template)
	for _, name := range g.RoleNames() {
		validateRole(&ps, g, name)
	}
	validateTargets(&ps, g)
	validateConfigsSize(&ps, g)
	validateCompletion(&ps, g)
	return ps
}

// validateCompletion checks the completion rule by itself.
func validateCompletion(ps *Problems, g Group) {
	at := Path{"completion"}
	oneOf(ps, at.At("when"), "completion rule", g.Completion.When, Whens)
	notNegative(ps, at.At("deadline"), g.Completion.Deadline)
	for i, name := range g.Completion.Roles {
		if _, found := g.Roles[name]; !found {
			ps.Add(at.At("roles", i), "Unknown role", "the group has no role %q; it has %s", name,
				Quoted(g.RoleNames()))
			ps.DecidedBy([]Path{{"roles"}, at.At("roles")})
		}
	}
}

// validateRole checks a role by itself.
func validateRole(ps *Problems, g Group, name string) {
	r, at := g.Roles[name], Path{"roles", Key(name)}
	CheckName(ps, at, "role", name)
	CheckMemberNames(ps, at, g.Name, name)
	validateTemplate(ps, at, r.Template)
	validateCommand(ps, g, name)
	validatePort(ps, at.At("port"), r)
	validateResources(ps, at.At("resources"), name, r)
	validateGPURequest(ps, at.At("gpus"), name, r.GPUs)
	oneOf(ps, at.At("placement", "strategy"), "placement strategy", r.Placement.Strategy, Strategies)
	validateSpreadBy(ps, at.At("placement", "spread_by"), r.Placement.SpreadBy)
	oneOf(ps, at.At("restart", "condition"), "restart condition", r.Restart.Condition, Conditions)
	if attempts := r.Restart.MaxAttempts; attempts != nil && *attempts < 0 {
		ps.Add(at.At("restart", "max_attempts"), "Invalid number of attempts",
			"must be 1 or more, or 0 for no limit, got %d", *attempts)
	}
	notNegative(ps, at.At("restart", "delay"), r.Restart.Delay)
	notNegative(ps, at.At("grace_period"), r.GracePeriod)
	validateUpdate(ps, at.At("update"), r.Update)
	oneOf(ps, at.At("on_scale"), "on_scale value", r.OnScale, OnScales)
	if r.ExitCodes != nil {
		for i, entry := range r.ExitCodes.Final {
			if _, _, err := ParseExitCodes(entry); err != nil {
				ps.Add(at.At("exit_codes", "final", i), "Invalid exit code", "%v", err)
			}
		}
	}
}

// validateCommand checks that the role's members have something to run.
func validateCommand(ps *Problems, g Group, name string) {
	template, at := g.EffectiveTemplate(name), Path{"command"}
	role := Path{"roles", Key(name)}
	inputs := []Path{{"command"}, {"image"}, role.At("command"), role.At("image")}
	if g.Roles[name].Command != nil || len(g.Command) == 0 {
		at = role.At("command")
	}
	switch {
	case len(template.Command) == 0 && template.Image == "" && len(g.Command) > 0:
		ps.Add(at, "Missing command", "role %q overrides its group's command with an empty list, which needs an "+
			"image; omit it to inherit the command", name)
		ps.DecidedBy(inputs)
	case len(template.Command) == 0 && template.Image == "":
		ps.Add(at, "Missing command", "neither role %q nor its group has a command or an image", name)
		ps.DecidedBy(inputs)
	case len(template.Command) > 0 && template.Command[0] == "":
		ps.Add(at.At(0), "Missing command", "the program, the first string of the command, is empty")
		ps.DecidedBy(inputs)
	}
}

// validateTemplate checks what the members of a role or of the whole group run.
func validateTemplate(ps *Problems, at Path, t Template) {
	for _, name := range slices.Sorted(maps.Keys(t.Env)) {
		switch path := at.At("env", Key(name)); {
		case name == "":
			ps.Add(at.At("env"), "Invalid variable name", "the name of a variable is empty")
		case strings.ContainsAny(name, "=\x00"):
			ps.Add(path, "Invalid variable name",
				"%q contains \"=\" or a NUL character, which is not allowed in the name of a variable", name)
		case strings.HasPrefix(name, ReservedPrefix):
			ps.Add(path, "Reserved variable name", "%q is reserved for Trainyard, as are all names that start with %s",
				name, ReservedPrefix)
		}
	}
	if t.WorkingDir != "" && !strings.HasPrefix(t.WorkingDir, "/") {
		ps.Add(at.At("working_dir"), "Invalid working directory", "%q is not an absolute path; abspath(...) makes one",
			t.WorkingDir)
	}
	validateImage(ps, at.At("image"), t.Image)
	validateMounts(ps, at, t.Mounts)
	validateContainer(ps, at.At("container"), t.Container)
}

// ReservedPrefix starts the names of the variables that only Trainyard sets.
const ReservedPrefix = "TRAINYARD_"
