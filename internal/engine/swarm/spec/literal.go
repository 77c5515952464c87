package spec

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// quoted is the template that expands to the opening delimiter of a template.
const quoted = `{{"{{"}}`

// literal returns a template that expands to text. Swarm expands templates in values of variables, and in sources,
// targets and driver options of mounts. A list of all members, which is in each member's environment, becomes a
// template with a counter: as text, the size of a group in the Swarm's store and lists would grow with the square of
// its members.
func literal(text string) string {
	var template strings.Builder
	for n := 0; ; n++ {
		at := firstOfSeries.FindStringSubmatchIndex(text)
		if at == nil {
			template.WriteString(quote(text))
			return template.String()
		}
		s, begin := series{head: text[at[2]:at[3]], tail: text[at[4]:at[5]]}, at[0]+1
		s.last = s.length(text[begin:]) - 1
		listed, counted := s.text(), s.template(n)
		template.WriteString(quote(text[:begin]))
		if len(counted) < len(listed) {
			template.WriteString(counted)
		} else {
			template.WriteString(quote(listed))
		}
		text = text[begin+len(listed):]
	}
}

// unquoted returns the text that literal turns into this template. Any other template is returned unchanged, and not
// ok.
func unquoted(template string) (text string, ok bool) {
	size := 0
	text = countedSeries.ReplaceAllStringFunc(template, func(counted string) string {
		part := countedSeries.FindStringSubmatch(counted)
		last, _ := strconv.Atoi(part[3]) // at most five digits
		s := series{part[1], part[2], last}
		if size += (last + 1) * len(s.item(last)+","); size > longestText {
			return counted // so literal can't have made it
		}
		return s.text()
	})
	text = strings.ReplaceAll(text, quoted, "{{")
	if template != literal(text) && template != quote(text) {
		return template, false
	}
	return text, true
}

func quote(text string) string { return strings.ReplaceAll(text, "{{", quoted) }

// series are the items of a JSON list of addresses that differ only in their index:
// "job-worker-0:9000","job-worker-1:9000" and so on.
type series struct {
	head, tail string
	last       int
}

// longestText exceeds the maximum size of a variable, which is 128 KiB on Linux.
const longestText = 1 << 20

var (
	firstOfSeries = regexp.MustCompile(`\["([a-z0-9-]+-)0((?::[0-9]+)?)"`)
	countedSeries = regexp.MustCompile(
		`{{define "[0-9]+"}}"([a-z0-9-]+-){{\.}}((?::[0-9]+)?)"{{if lt \. ([0-9]{1,5})}}[^{]*{{template [^{}]*}}{{end}}{{end}}{{template "[0-9]+" 0}}`,
	)
)

func (s series) item(index int) string { return fmt.Sprintf(`"%s%d%s"`, s.head, index, s.tail) }

// length returns the number of the series' items that a text begins with.
func (s series) length(text string) int {
	for n, rest := 0, text; ; n++ {
		after, found := strings.CutPrefix(rest, s.item(n))
		if !found {
			return n
		}
		if rest, found = strings.CutPrefix(after, ","); !found {
			return n + 1
		}
	}
}

func (s series) text() string {
	items := make([]string, s.last+1)
	for i := range items {
		items[i] = s.item(i)
	}
	return strings.Join(items, ",")
}

// template returns template number n of a text, which expands to the series. It calls itself recursively, as Swarm's
// templates can't loop over numbers, and adds one by the length of a padded string.
func (s series) template(n int) string {
	return fmt.Sprintf(`{{define "%[1]d"}}"%[2]s{{.}}%[3]s"{{if lt . %[4]d}},{{template "%[1]d" len (printf "%%*s." . "")}}{{end}}{{end}}{{template "%[1]d" 0}}`,
		n, s.head, s.tail, s.last)
}
