package topology

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Validate returns everything wrong with a group that can be told from its specification alone: names, roles,
// ranges, rules that contradict each other, and templates, which are tried for every member. Clashes of ports,
// and what the hosts can't offer, are found by placement.
func Validate(g domain.Group) domain.Problems {
	_, ps := Check(g)
	return ps
}

// Check returns what is wrong with a group, as [Validate] does, and the members that it declares, nil where none can be
// made.
func Check(g domain.Group) (members []domain.Member, ps domain.Problems) {
	domain.CheckName(&ps, domain.Path{"cluster", "name"}, "cluster", g.Cluster)
	domain.CheckName(&ps, domain.Path{"name"}, "group", g.Name)
	oneOf(&ps, domain.Path{"restart_scope"}, "restart scope", g.RestartScope, domain.RestartScopes)
	oneOf(&ps, domain.Path{"wait_for"}, "phase to wait for", g.WaitFor, domain.WaitFors)
	validateTemplate(&ps, domain.Path{}, g.Template)
	for _, name := range g.RoleNames() {
		validateRole(&ps, g, name)
	}
	validateTargets(&ps, g)
	validateConfigsSize(&ps, g)
	f, known := lookup(g.Framework)
	if !known {
		return nil, append(ps, unknownFramework(g.Framework))
	}
	if !validateRoles(&ps, g, f) {
		return nil, ps
	}
	// With members of their own and a framework that knows them, roles can be laid out.
	members = Expand(g, Counts(g, nil), nil)
	validateCompletion(&ps, g, f, members)
	validateTemplates(&ps, g, members)
	return members, ps
}

// ValidateCounts returns what keeps a valid group from having these numbers of members, though it declares no others: a framework that needs
// more or takes fewer of them, and templates that can't be rendered for all of them.
func ValidateCounts(g domain.Group, counts map[string]int, absent map[string][]int) domain.Problems {
	var ps domain.Problems
	f, _ := lookup(g.Framework)
	if validateCounts(&ps, g, f, counts) {
		validateNeeds(&ps, g, f, counts)
		validateTemplates(&ps, g, Expand(g, counts, absent))
	}
	return ps
}

func unknownFramework(name string) domain.Problem {
	return domain.Problem{
		Path:    domain.Path{"framework"},
		Summary: "Unknown framework",
		Detail:  fmt.Sprintf("there is no framework %q; there are %s. Use \"none\" for a program that needs no other", name, quoted(Names())),
	}
}

// validateRoles checks the roles as a set, and tells whether members can be made of them.
func validateRoles(ps *domain.Problems, g domain.Group, f framework) bool {
	counts, total := Counts(g, nil), 0
	if !validateCounts(ps, g, f, counts) {
		return false
	}
	for _, name := range g.RoleNames() {
		total += counts[name]
		if len(f.roles) > 0 && !slices.Contains(f.roleNames(), name) {
			ps.Add(domain.Path{"roles", domain.Key(name)}, "Unknown role", "framework %q has no role %q; it has %s. Use framework \"none\" for roles of your own", f.name, name, quoted(f.roleNames()))
			ps.DecidedBy([]domain.Path{{"framework"}})
		}
	}
	if total == 0 {
		ps.Add(domain.Path{"roles"}, "No members", "a group needs at least one role with at least one replica")
		ps.DecidedBy(countInputs(g))
		return false
	}
	validateNeeds(ps, g, f, counts)
	return true
}

// countInputs are the attributes that say which members a group has.
func countInputs(g domain.Group) []domain.Path {
	if len(g.Roles) == 0 {
		return []domain.Path{{"framework"}, {"roles"}}
	}
	inputs := []domain.Path{{"framework"}}
	for _, name := range g.RoleNames() {
		inputs = append(inputs, domain.Path{"roles", domain.Key(name), "replicas"})
	}
	return inputs
}

// validateCounts checks the numbers of members, each for itself, and tells whether members can be made of them.
func validateCounts(ps *domain.Problems, g domain.Group, f framework, counts map[string]int) bool {
	for _, name := range g.RoleNames() {
		at := domain.Path{"roles", domain.Key(name), "replicas"}
		if counts[name] < 0 || counts[name] > domain.MaxReplicas {
			ps.Add(at, "Invalid number of members", "role %q has %d replicas; 0 to %d are allowed", name, counts[name], domain.MaxReplicas)
			return false
		}
		if most := f.role(name).most; most > 0 && counts[name] > most {
			ps.Add(at, "Too many members", "role %q has %d replicas; framework %q takes at most %d", name, counts[name], f.name, most)
		}
	}
	return true
}

// validateNeeds checks that there are members of the roles that the framework needs.
func validateNeeds(ps *domain.Problems, g domain.Group, f framework, counts map[string]int) {
	for _, set := range f.needs {
		if !slices.ContainsFunc(set, func(name string) bool { return counts[name] > 0 }) {
			ps.Add(domain.Path{"roles"}, "Missing role", "framework %q needs a role %s with at least 1 replica", f.name, alternatives(set))
			ps.DecidedBy(countInputs(g))
		}
	}
}

// minCPUs is the smallest share of a processor that a control group can be limited to.
const minCPUs = 0.01

// validateRole checks what a role says for itself.
func validateRole(ps *domain.Problems, g domain.Group, name string) {
	r, at := g.Roles[name], domain.Path{"roles", domain.Key(name)}
	domain.CheckName(ps, at, "role", name)
	domain.CheckMemberNames(ps, at, g.Name, name)
	validateTemplate(ps, at, r.Template)
	validateCommand(ps, g, name)
	validatePort(ps, at.At("port"), r)
	validateResources(ps, at.At("resources"), name, r)
	validateGPUs(ps, g, name, at)
	oneOf(ps, at.At("placement", "strategy"), "placement strategy", r.Placement.Strategy, domain.Strategies)
	oneOf(ps, at.At("restart", "condition"), "restart condition", r.Restart.Condition, domain.Conditions)
	if attempts := r.Restart.MaxAttempts; attempts != nil && *attempts < 0 {
		ps.Add(at.At("restart", "max_attempts"), "Invalid number of attempts", "%d restarts are not possible; 1 or more are, and 0 sets no bound", *attempts)
	}
	notNegative(ps, at.At("restart", "delay"), r.Restart.Delay)
	notNegative(ps, at.At("grace_period"), r.GracePeriod)
	validateUpdate(ps, at.At("update"), r.Update)
	oneOf(ps, at.At("on_scale"), "effect of another number of members", r.OnScale, domain.OnScales)
	if r.ExitCodes != nil {
		for i, entry := range r.ExitCodes.Final {
			if _, _, err := domain.ParseExitCodes(entry); err != nil {
				ps.Add(at.At("exit_codes", "final", i), "Invalid exit code", "%v", err)
			}
		}
	}
}

func validateUpdate(ps *domain.Problems, at domain.Path, u domain.Update) {
	if u.Parallelism < 0 {
		ps.Add(at.At("parallelism"), "Invalid number of members", "%d members can't be changed at a time; 1 or more can, and 0 changes all at once", u.Parallelism)
	}
	notNegative(ps, at.At("delay"), u.Delay)
	oneOf(ps, at.At("on_failure"), "reaction to a failure", u.OnFailure, domain.OnFailures)
}

// validateResources checks what a role's members request, and that their limits leave room for it.
func validateResources(ps *domain.Problems, at domain.Path, name string, r domain.Role) {
	for _, amount := range []struct {
		at        domain.Path
		does      string
		resources domain.Resources
	}{{at, "requests", r.Resources.Requests()}, {at.At("limits"), "is limited to", r.Resources.Limits}} {
		if cpus := amount.resources.CPUs; cpus != 0 && cpus < minCPUs {
			ps.Add(amount.at.At("cpus"), "Invalid resources", "role %q %s %v CPUs; %v or more are allowed, and 0 is as if left out", name, amount.does, cpus, minCPUs)
		}
		if memory := amount.resources.MemoryMiB; memory < 0 {
			ps.Add(amount.at.At("memory_mib"), "Invalid resources", "role %q %s %d MiB of memory; 0 or more are allowed", name, amount.does, memory)
		}
	}
	if r.Resources.Limits.CPUs > 0 && r.Resources.Limits.CPUs < r.Resources.CPUs {
		ps.Add(at.At("limits", "cpus"), "Invalid limit", "role %q is limited to %v CPUs, and requests %v; the limit has to be as much at least", name, r.Resources.Limits.CPUs, r.Resources.CPUs)
	}
	if r.Resources.Limits.MemoryMiB > 0 && r.Resources.Limits.MemoryMiB < r.Resources.MemoryMiB {
		ps.Add(at.At("limits", "memory_mib"), "Invalid limit", "role %q is limited to %d MiB of memory, and requests %d; the limit has to be as much at least", name, r.Resources.Limits.MemoryMiB, r.Resources.MemoryMiB)
	}
}

// validatePort checks that the ports of a role's members, which count up from its first, are ports.
func validatePort(ps *domain.Problems, at domain.Path, r domain.Role) {
	if r.Port != nil && (*r.Port < 1 || *r.Port > 65535) {
		ps.Add(at, "Invalid port", "%d is not a port; 1 to 65535 are", *r.Port)
	}
}

// validateCommand checks that the role's members have something to run.
func validateCommand(ps *domain.Problems, g domain.Group, name string) {
	template, at := g.EffectiveTemplate(name), domain.Path{"command"}
	role := domain.Path{"roles", domain.Key(name)}
	inputs := []domain.Path{{"command"}, {"image"}, role.At("command"), role.At("image")}
	if g.Roles[name].Command != nil || len(g.Command) == 0 {
		at = role.At("command")
	}
	switch {
	case len(template.Command) == 0 && template.Image == "":
		ps.Add(at, "Missing command", "role %q has neither a command nor an image, and neither has the group", name)
		ps.DecidedBy(inputs)
	case len(template.Command) > 0 && template.Command[0] == "":
		ps.Add(at.At(0), "Missing command", "the first string of a command is the program, and it is empty")
		ps.DecidedBy(inputs)
	}
}

// validateTemplate checks what a role or the group as a whole says of what its members run.
func validateTemplate(ps *domain.Problems, at domain.Path, t domain.Template) {
	for _, name := range slices.Sorted(maps.Keys(t.Env)) {
		switch path := at.At("env", domain.Key(name)); {
		case name == "":
			ps.Add(at.At("env"), "Invalid variable name", "the name of a variable is empty")
		case strings.ContainsAny(name, "=\x00"):
			ps.Add(path, "Invalid variable name", "%q contains \"=\" or a NUL character, which no name of a variable may", name)
		case strings.HasPrefix(name, reservedPrefix):
			ps.Add(path, "Reserved variable name", "%q is Trainyard's to set, as are all names that start with %s", name, reservedPrefix)
		}
	}
	if t.WorkingDir != "" && !strings.HasPrefix(t.WorkingDir, "/") {
		ps.Add(at.At("working_dir"), "Invalid working directory", "%q is not an absolute path; abspath(...) makes one", t.WorkingDir)
	}
	validateImage(ps, at.At("image"), t.Image)
	validateMounts(ps, at, t.Mounts)
	validateContainer(ps, at.At("container"), t.Container)
}

// validateCompletion checks the rule of completion against the members.
func validateCompletion(ps *domain.Problems, g domain.Group, f framework, members []domain.Member) {
	at := domain.Path{"completion"}
	oneOf(ps, at.At("when"), "rule of completion", g.Completion.When, domain.Whens)
	notNegative(ps, at.At("deadline"), g.Completion.Deadline)
	for i, name := range g.Completion.Roles {
		if _, found := g.Roles[name]; !found {
			ps.Add(at.At("roles", i), "Unknown role", "the group has no role %q; it has %s", name, quoted(g.RoleNames()))
		}
	}
	rule := Rule(g, members)
	inputs := append(countInputs(g), domain.Path{"wait_for"}, at.At("when"), at.At("roles"))
	switch {
	case rule.When == domain.WhenChief && len(rule.Members) == 0:
		ps.Add(at.At("when"), "No chief", "the chief is member 0 of a role %s, and none of them has members; name another in completion.roles, or use another rule", alternatives(chiefCandidates(g, f)))
		ps.DecidedBy(inputs)
	case (rule.When == domain.WhenAll || rule.When == domain.WhenAny) && len(rule.Members) == 0:
		ps.Add(at.At("when"), "No members to complete", "the rule %q looks at no member: roles that serve others don't count unless completion.roles names them", rule.When)
		ps.DecidedBy(inputs)
	case rule.When == domain.WhenNever && g.WaitFor == domain.WaitCompleted:
		ps.Add(domain.Path{"wait_for"}, "Waiting forever", "the group never completes (completion.when is %q): wait for %q", rule.When, domain.WaitRunning)
		ps.DecidedBy(inputs)
	}
}

// orOwn are an attribute that decides about a role and, where it is the group's, those of the role that would take its
// place.
func orOwn(role string, at domain.Path) []domain.Path {
	if at[0] == "roles" {
		return []domain.Path{at}
	}
	own := domain.Path{"roles", domain.Key(role)}
	inputs := []domain.Path{at, own.At(at...)}
	if at[0] == "args" {
		inputs = append(inputs, own.At("command")) // a role's own command drops the group's arguments
	}
	return inputs
}

// validateTemplates tries the templates of every role for every member, in the place of whose address another
// stands. Of the faults of one attribute, which all members share, the first is reported.
func validateTemplates(ps *domain.Problems, g domain.Group, members []domain.Member) {
	for i := range members {
		members[i].Host, members[i].Address, members[i].Port = "host", "host:1", 1
	}
	l := NewLayout(g, members, nil)
	inputs := append(countInputs(g), domain.Path{"name"}, domain.Path{"cluster"})
	reported := map[string]bool{}
	report := func(role string, problems domain.Problems) {
		for _, p := range problems {
			if at := p.Path.String(); !reported[at] {
				reported[at] = true
				p.Inputs = slices.Concat(inputs, orOwn(role, p.Path))
				*ps = append(*ps, p)
			}
		}
	}
	for _, name := range g.RoleNames() {
		prog, problems := l.programs[name]()
		report(name, problems)
		if len(problems) > 0 {
			continue
		}
		for _, m := range members {
			if m.Role != name {
				continue
			}
			_, problems := prog.render(g, m)
			report(name, problems)
			if prog.static() {
				break
			}
		}
	}
}

// oneOf adds a problem where a value that is given is not among those allowed.
func oneOf[T ~string](ps *domain.Problems, path domain.Path, what string, value T, allowed []T) {
	if value != "" && !slices.Contains(allowed, value) {
		ps.Add(path, "Unknown "+what, "%q is no %s; there are %s", value, what, quoted(allowed))
	}
}

func notNegative(ps *domain.Problems, path domain.Path, d *domain.Duration) {
	if d != nil && *d < 0 {
		ps.Add(path, "Invalid duration", "%s is negative; \"0s\" or more is allowed", *d)
	}
}

func quoted[T ~string](names []T) string {
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = fmt.Sprintf("%q", string(name))
	}
	return strings.Join(parts, ", ")
}

// alternatives lists names of which one will do.
func alternatives(names []string) string {
	return strings.ReplaceAll(quoted(names), ", ", " or ")
}
