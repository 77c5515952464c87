// Package printable makes text from members, agents, hosts and registries safe for terminals, which interpret some
// characters as commands: the text could overwrite earlier output, or look like something else.
package printable

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text replaces everything that a terminal may interpret by U+FFFD: control characters except line feed and tab, those
// that change the writing direction, and bytes that are not UTF-8.
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
