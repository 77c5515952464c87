// Package printable makes text from members, agents, hosts and registries safe for terminals, which interpret some
// characters as commands: the text could overwrite earlier output, or look like something else.
package printable

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text replaces by U+FFFD what a terminal may take for a command: control characters except line feeds and tabs, those
// that change the direction of writing, and bytes that aren't UTF-8.
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
