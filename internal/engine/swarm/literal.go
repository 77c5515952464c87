package swarm

import "strings"

// quoted is the template that expands to what begins a template.
const quoted = `{{"{{"}}`

// literal returns the template that expands to a text. Swarm expands templates in the values of variables, and in the sources
// and targets of mounts.
func literal(text string) string { return strings.ReplaceAll(text, "{{", quoted) }

// unquoted returns the text of which literal makes a template. Another template is returned as it is, and not ok.
func unquoted(template string) (text string, ok bool) {
	text = strings.ReplaceAll(template, quoted, "{{")
	if literal(text) != template {
		return template, false
	}
	return text, true
}
