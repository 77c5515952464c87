package acctest

import (
	"iter"
	"os"
	"slices"
)

// killsVariable has tests of deaths and mishaps try every moment that they know: TRAINYARD_TEST_KILLS=all.
const killsVariable = "TRAINYARD_TEST_KILLS"

// AllKills reports whether tests try every moment instead of a handful, as the nightly run does.
func AllKills() bool { return os.Getenv(killsVariable) == "all" }

// Kills returns the moments, counted from 1, at which a test kills: the given handful, or without end all of them.
func Kills(handful ...int) iter.Seq[int] {
	if !AllKills() {
		return slices.Values(handful)
	}
	return func(yield func(int) bool) {
		for moment := 1; yield(moment); moment++ {
		}
	}
}
