package acctest

import (
	"strings"

	"pgregory.net/rapid"
)

// HostileMark is contained in each hostile text, so that tests can find it again.
const HostileMark = "hostile"

// Hostile generates texts that a terminal would interpret as commands.
func Hostile() *rapid.Generator[string] {
	part := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
		"\x1b[2J", "\x1b]0;title\a", "\x1b]8;;http://elsewhere\x1b\\", "\u009b31m", "\x9b1m", "\x7f", "\r", "\b",
		"\u202egnp.exe", "\u2066", "\x00", "\xff\xfe",
	}))
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(part, 1, 4).Draw(t, "parts"), "") + HostileMark
	})
}
