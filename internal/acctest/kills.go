package acctest

import (
	"iter"
	"os"
	"slices"
)

// killsVariable makes tests try everything that they know, which takes hours: TRAINYARD_TEST_KILLS=all.
const killsVariable = "TRAINYARD_TEST_KILLS"

// AllKills reports whether tests try every moment of a crash or fault, every Engine and every seed instead of a few, as
// in the nightly run.
func AllKills() bool { return os.Getenv(killsVariable) == "all" }

// Kills returns the moments, counted from 1, at which a test kills: the given few, or all without end.
func Kills(handful ...int) iter.Seq[int] {
	if !AllKills() {
		return slices.Values(handful)
	}
	return func(yield func(int) bool) {
		for moment := 1; yield(moment); moment++ {
		}
	}
}
