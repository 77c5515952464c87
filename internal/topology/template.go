package topology

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// program is what the members of a role run, with its templates parsed.
type program struct {
	template domain.Template
	// command, args and env hold the strings of the template; env by name.
	command []text
	args    []text
	env     map[string]text
	// allowed describes what templates may refer to.
	allowed string
}

// text is a string of a specification; parsed is nil if it is not a template.
type text struct {
	path   domain.Path
	raw    string
	parsed *template.Template
}

// compile parses what the members of a role run, and returns what is wrong with its templates.
func compile(l *Layout, name string) (program, domain.Problems) {
	own, functions := l.group.Roles[name].Template, l.functions()
	p := program{template: l.group.EffectiveTemplate(name), env: map[string]text{}, allowed: l.allowed()}
	var problems domain.Problems
	read := func(raw string, path domain.Path) text {
		t := text{path: path, raw: raw}
		if strings.Contains(raw, "{{") {
			parsed, err := template.New("").Option("missingkey=error").Funcs(functions).Parse(raw)
			if err != nil {
				problems.Add(path, "Invalid template", "%s. %s", explain(err), p.allowed)
			}
			t.parsed = parsed
		}
		return t
	}
	// at returns the path of an attribute of the role, or of the group if the role inherits it.
	at := func(isOwn bool, steps ...any) domain.Path {
		if isOwn {
			return domain.Path{"roles", domain.Key(name)}.At(steps...)
		}
		return domain.Path{}.At(steps...)
	}
	for i, raw := range p.template.Command {
		p.command = append(p.command, read(raw, at(own.Command != nil, "command", i)))
	}
	for i, raw := range p.template.Args {
		p.args = append(p.args, read(raw, at(own.Args != nil, "args", i)))
	}
	for _, variable := range slices.Sorted(maps.Keys(p.template.Env)) {
		_, isOwn := own.Env[variable]
		p.env[variable] = read(p.template.Env[variable], at(isOwn, "env", domain.Key(variable)))
	}
	return p, problems
}

// static reports whether the program is the same for all members.
func (p program) static() bool {
	isTemplate := func(t text) bool { return t.parsed != nil }
	if slices.ContainsFunc(p.command, isTemplate) || slices.ContainsFunc(p.args, isTemplate) {
		return false
	}
	for _, t := range p.env {
		if t.parsed != nil {
			return false
		}
	}
	return true
}

// rendered is a program with its templates executed for a member.
type rendered struct {
	command, args []string
	env           map[string]string
}

// render executes the templates for a member. The problems point to the attributes at fault.
func (p program) render(g domain.Group, m domain.Member) (r rendered, problems domain.Problems) {
	fields := map[string]any{
		"Role": m.Role, "Group": g.Name, "Cluster": g.Cluster, "Port": m.Port, "Env": p.template.Env,
	}
	if !m.Shared() {
		maps.Copy(fields, map[string]any{"Index": m.Index, "Name": m.Name, "Host": m.Host, "Address": m.Address})
	}
	render := func(t text) string {
		if t.parsed == nil {
			return t.raw
		}
		var out limited
		if err := t.parsed.Execute(&out, fields); err != nil {
			problems.Add(t.path, "Invalid template", "%s%s", explain(err), p.context(m))
			if strings.Contains(t.raw, ".Env") {
				problems.DecidedBy([]domain.Path{{"env"}, {"roles", domain.Key(m.Role), "env"}})
			}
		}
		return out.String()
	}
	renderAll := func(texts []text) (values []string) {
		for _, t := range texts {
			value := render(t)
			checkString(&problems, t.path, "", value)
			values = append(values, value)
		}
		return values
	}
	r.command, r.args = renderAll(p.command), renderAll(p.args)
	r.env = make(map[string]string, len(p.env))
	for _, name := range slices.Sorted(maps.Keys(p.env)) {
		r.env[name] = render(p.env[name])
		checkString(&problems, p.env[name].path, name, r.env[name])
	}
	return r, problems
}

// context says for which member a template failed, and what it may refer to.
func (p program) context(m domain.Member) string {
	if m.Shared() {
		return fmt.Sprintf(". The members of role %q are interchangeable, and the engine places them itself: they "+
			"share one specification, "+
			"and none has an .Index, .Name, .Host or .Address of its own. At run time, a member finds its host and "+
			"address in TRAINYARD_HOST and TRAINYARD_ADDRESS", m.Role)
	}
	return fmt.Sprintf(", for member %s. %s", m.Name, p.allowed)
}

// functions returns the functions for templates. They only know the members that others may depend on.
func (l *Layout) functions() template.FuncMap {
	of := func(role string) ([]string, error) {
		addresses, found := l.peers[role]
		if _, known := l.group.Roles[role]; !known {
			return nil, fmt.Errorf("there is no role %q", role)
		}
		if !found && l.framework.role(role).interchangeable {
			return nil, fmt.Errorf("members of role %q are interchangeable: nothing may depend on where they run", role)
		}
		return addresses, nil
	}
	return template.FuncMap{
		"address": func(role string, index int) (string, error) {
			addresses, err := of(role)
			switch {
			case err != nil:
				return "", err
			case len(addresses) == 0:
				return "", fmt.Errorf("role %q has no members", role)
			case index < 0 || index >= len(addresses):
				return "", fmt.Errorf("role %q has no member %d: its indexes go from 0 to %d", role, index,
					len(addresses)-1)
			}
			return addresses[index], nil
		},
		"addresses": func(role string) (string, error) {
			addresses, err := of(role)
			return strings.Join(addresses, ","), err
		},
		"replicas": func(role string) (int, error) {
			addresses, err := of(role)
			return len(addresses), err
		},
		"hostname": func(address string) string { host, _ := split(address); return host },
		"port":     func(address string) string { _, port := split(address); return port },
	}
}

// allowed describes what templates may refer to.
func (l *Layout) allowed() string {
	var roles []string
	for _, name := range l.group.RoleNames() {
		if !l.framework.role(name).interchangeable {
			roles = append(roles, fmt.Sprintf("%s (%d)", name, len(l.peers[name])))
		}
	}
	return "Fields are .Index .Name .Role .Group .Cluster .Host .Address .Port, and .Env.NAME for the variables of " +
		"env; functions are address ROLE INDEX, " +
		"addresses ROLE, replicas ROLE, hostname ADDRESS, port ADDRESS; roles and their members are " +
		strings.Join(roles,
			", ")
}

// templateError matches the errors of package text/template: where, in which action, and why.
var templateError = regexp.MustCompile(
	`(?s)^template: :\d+(?::\d+)?: (?:executing "" at <(.*?)>: )?(?:error calling \w+: )?(.*)$`,
)

// explain returns the cause of an error of package text/template. It quotes only the action at fault, as the string
// around it may hold a secret.
func explain(err error) string {
	match := templateError.FindStringSubmatch(err.Error())
	switch {
	case match == nil:
		return err.Error()
	case match[1] == "":
		return match[2]
	}
	return fmt.Sprintf("{{ %s }}: %s", match[1], match[2])
}

// maxString is the longest string that Linux accepts as an argument or environment variable (MAX_ARG_STRLEN, less the
// terminating NUL).
const maxString = 128<<10 - 1

// limited collects the output of a template, up to the longest string that a process can be given.
type limited struct{ strings.Builder }

var errTooLong = errors.New(
	"the result is longer than 128 KiB, the maximum that Linux passes to a process in one string",
)

func (l *limited) Write(data []byte) (int, error) {
	if l.Len()+len(data) > maxString {
		return 0, errTooLong
	}
	return l.Builder.Write(data)
}

// checkString adds a problem if a process can't be given a value, as an argument or, with a name, as a variable.
func checkString(ps *domain.Problems, path domain.Path, name, value string) {
	what, length := "the value", len(value)
	if name != "" {
		what, length = "the variable "+name, len(name)+len("=")+len(value)
	}
	switch {
	case strings.ContainsRune(value, 0):
		ps.Add(path, "Invalid character", "%s contains a NUL character, which can't be passed to a process", what)
	case length > maxString:
		ps.Add(path, "Too long",
			"%s takes %d bytes; Linux passes at most %d to a process in one string. Shorten it, or pass it in a file",
			what, length, maxString)
	}
}
