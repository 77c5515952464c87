package printable

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestText(t *testing.T) {
	for s, want := range map[string][2]string{
		"": {"", ""},
		"loss 0.1 °C – ✓ 損失\u00a0👩‍🔬": {"loss 0.1 °C – ✓ 損失\u00a0👩‍🔬", "loss 0.1 °C – ✓ 損失\u00a0👩‍🔬"},
		"one\n\ttwo":                      {"one\n\ttwo", "one  two"},
		"\x1b[31mred\x1b]0;title\a":       {"�[31mred�]0;title�", "�[31mred�]0;title�"},
		"10 %\r20 %\x7f\x00":              {"10 %�20 %��", "10 %�20 %��"},
		"\u009b31m":                       {"�31m", "�31m"},
		"exe.\u202etxt\u2066\u2069\u200f": {"exe.�txt���", "exe.�txt���"},
		"\x9b31m\xff\xfe":                 {"�31m��", "�31m��"},
		"a � of its own":                  {"a � of its own", "a � of its own"},
	} {
		if got := [2]string{Text(s), Line(s)}; got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
}

// TestTextProperties: the result prints as it is, keeps its width, and does not change again.
func TestTextProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		check(t, string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))+rapid.String().Draw(t, "text"))
	})
}

func FuzzText(f *testing.F) {
	for _, text := range []string{
		"", "CUDA out of memory", "a\nb\r\n", "\x1b[2J\x1b]0;title\a", "\x9b31m", "caf\xe9", "\u202egnp.exe",
		"\u0085\u2028", "\x7f", "\ufffd",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { check(t, text) })
}

// check fails unless [Text] and [Line] make a text safe for a terminal.
func check(t interface{ Errorf(string, ...any) }, s string) {
	for _, got := range []string{Text(s), Line(s)} {
		if !utf8.ValidString(got) {
			t.Errorf("%q is not UTF-8", got)
		}
		if i := strings.IndexFunc(got, func(r rune) bool {
			return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
		}); i >= 0 {
			t.Errorf("%q has a control character at %d", got, i)
		}
		if Text(got) != got {
			t.Errorf("%q becomes %q", got, Text(got))
		}
	}
	if got := Text(s); utf8.RuneCountInString(got) != utf8.RuneCountInString(s) {
		t.Errorf("%q has another width than %q", got, s)
	}
	if strings.ContainsAny(Line(s), "\n\t") {
		t.Errorf("%q has several lines", Line(s))
	}
}
