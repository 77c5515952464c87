package command

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// FuzzPrintable shows that whatever others wrote is one line of text without any control character, and that what is such a line stays as it is.
func FuzzPrintable(f *testing.F) {
	for _, text := range []string{
		"", "CUDA out of memory", "a\nb\r\n", "\x1b[2J\x1b]0;title\a", "\x9b31m", "caf\xe9", "\u202egnp.exe", "\u0085\u2028", "é ü 漢", "\u200b", "a\u00a0b", "\x7f", "\ufffd",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := Printable(text)
		if !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return r != ' ' && !unicode.IsPrint(r) }) {
			t.Errorf("%q becomes %q", text, got)
		}
		if len(got) > utf8.UTFMax*len(text) {
			t.Errorf("%d bytes become %d", len(text), len(got))
		}
		if again := Printable(got); again != got {
			t.Errorf("%q becomes %q, and that %q", text, got, again)
		}
	})
}
