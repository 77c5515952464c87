// Package printable makes what others wrote fit for a terminal: members, agents, hosts, registries. A terminal takes some characters for commands,
// by which a text could overwrite what was shown before, or look like another.
package printable

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns a text without what a terminal takes for a command: control characters but for line feeds and tabs, those that change the direction
// of writing, and what is not UTF-8. U+FFFD stands for each, so that it is seen, and the text keeps its width.
func Text(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Bidi_Control) {
			return utf8.RuneError
		}
		return r
	}, s)
}

// Line is [Text] with a space for each line feed and tab.
func Line(s string) string { return lines.Replace(Text(s)) }

var lines = strings.NewReplacer("\n", " ", "\t", " ")
