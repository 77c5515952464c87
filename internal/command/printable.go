package command

import (
	"strings"
	"unicode"
)

// Printable returns a text that others wrote as one line, without what a terminal would take for a command.
func Printable(s string) string {
	words := strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) })
	return strings.Join(words, " ")
}
