package imagesource

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Bases returns the images of the Dockerfile's FROM and COPY --from. It leaves out those whose names can't be derived
// from the Dockerfile and its arguments.
func (b Build) Bases() ([]string, error) {
	content, err := os.ReadFile(filepath.Join(b.Context, b.Dockerfile))
	if err != nil {
		return nil, err
	}
	return bases(string(content), b.Args), nil
}

// bases returns the distinct images of a Dockerfile's FROM and COPY --from, without its own stages.
func bases(dockerfile string, given map[string]string) []string {
	args, stages, images := map[string]string{}, map[string]bool{"scratch": true}, map[string]bool{}
	started := false
	add := func(image string) {
		if image != "" && !stages[strings.ToLower(image)] {
			images[image] = true
		}
	}
	for _, line := range instructions(dockerfile) {
		words := strings.Fields(line)
		isFlag := func(word string) bool { return strings.HasPrefix(word, "--") }
		switch strings.ToUpper(words[0]) {
		case "ARG":
			for _, arg := range words[1:] {
				if !started { // later ones belong to a stage
					declare(args, arg, given)
				}
			}
		case "FROM":
			started = true
			words = slices.DeleteFunc(words[1:], isFlag)
			if len(words) > 0 {
				add(expand(words[0], args))
			}
			if len(words) == 3 && strings.EqualFold(words[1], "as") {
				stages[strings.ToLower(words[2])] = true
			}
		case "COPY":
			for _, word := range words[1:] {
				if from, found := strings.CutPrefix(word, "--from="); found && !stageNumber.MatchString(from) {
					add(from)
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(images))
}

var (
	// escapeDirective matches the directive at the top of a Dockerfile that replaces the backslash as escape character.
	escapeDirective = regexp.MustCompile("(?im)\\A(?:#\\s*\\w+\\s*=.*\n)*?#\\s*escape\\s*=\\s*([\\\\`])\\s*$")
	stageNumber     = regexp.MustCompile(`^[0-9]+$`)
	variableName    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*`)
)

// instructions returns the instructions of a Dockerfile, one per line, without comments.
func instructions(dockerfile string) []string {
	dockerfile = strings.ReplaceAll(strings.TrimPrefix(dockerfile, "\ufeff"), "\r\n", "\n")
	escape := `\`
	if directive := escapeDirective.FindStringSubmatch(dockerfile); directive != nil {
		escape = directive[1]
	}
	var found []string
	instruction := ""
	for line := range strings.Lines(dockerfile + "\n") {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") {
			continue
		}
		part, goesOn := strings.CutSuffix(line, escape)
		instruction += part + " "
		if goesOn || line == "" && strings.TrimSpace(instruction) != "" {
			continue
		}
		if strings.TrimSpace(instruction) != "" {
			found = append(found, instruction)
		}
		instruction = ""
	}
	return found
}

// declare adds an argument, declared as name or name=default; a given value takes precedence.
func declare(args map[string]string, arg string, given map[string]string) {
	name, byDefault, found := strings.Cut(arg, "=")
	if value, set := given[name]; set {
		args[name] = value
	} else if found {
		args[name] = expand(strings.Trim(byDefault, `"'`), args)
	}
}

// expand returns a word with its variables expanded; "" if one has a form that is not supported here.
func expand(word string, args map[string]string) string {
	known := true
	expanded := os.Expand(word, func(variable string) string {
		name := variableName.FindString(variable)
		value, set := args[name]
		form, orEmpty := strings.CutPrefix(variable[len(name):], ":")
		if orEmpty {
			set = value != ""
		}
		switch {
		case name == "" || form == "" && orEmpty:
		case form == "" || form[0] == '-' && set:
			return value
		case form[0] == '-' || form[0] == '+' && set:
			return form[1:]
		case form[0] == '+':
			return ""
		}
		known = false
		return ""
	})
	if !known {
		return ""
	}
	return expanded
}
