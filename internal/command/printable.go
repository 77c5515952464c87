package command

import (
	"strings"
	"unicode"
)

// Printable returns a text that others wrote as one line, without what a terminal would take for a command.
func Printable(s string) string {
	// A byte that is no UTF-8 begins a command on some terminals, as 0x9b does.
	words := strings.FieldsFunc(strings.ToValidUTF8(s, string(unicode.ReplacementChar)), func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) })
	return strings.Join(words, " ")
}
