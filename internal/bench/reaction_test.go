//go:build linux

package main

import (
	"strings"
	"testing"
	"time"
)

// Each run has its own bar, depending on how long its first member took to start, and a single miss is enough to fail.
func TestReactionBars(t *testing.T) {
	at := func(decided, first, last float64, most int) reacted {
		seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
		return reacted{decided: seconds(decided), first: seconds(first), last: seconds(last), most: most}
	}
	for name, test := range map[string]struct {
		runs             []reacted
		first, last, few bool
	}{
		"in time":         {[]reacted{at(6, 7, 14, 4), at(2, 2.1, 12, 4)}, true, true, true},
		"a long start":    {[]reacted{at(6, 60, 120, 4)}, true, true, true},
		"decided late":    {[]reacted{at(2, 2, 9, 4), at(6.1, 7, 9, 4)}, false, true, true},
		"the fourth late": {[]reacted{at(6, 7, 14.1, 4)}, true, false, true},
		"too many":        {[]reacted{at(2, 2, 9, 5)}, true, true, false},
		"too few":         {[]reacted{at(2, 2, 9, 3)}, true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := reaction{interval: time.Second, window: 5 * time.Second, measured: test.runs}
			if first, last, few := r.held(); first != test.first || last != test.last || few != test.few {
				t.Errorf("held are %t, %t and %t", first, last, few)
			}
		})
	}
	late := at(6.1, 7, 9, 5)
	late.why = []string{"from 4 to 5 members, as said"}
	var text strings.Builder
	for _, section := range reactionTable(
		[]reaction{{interval: time.Second, window: 5 * time.Second, measured: []reacted{at(2, 2, 9, 4), late}}},
	) {
		text.WriteString(section.String())
	}
	for _, want := range []string{
		"interval 1s, window 5s                   2", "4, 5\n",
		"start: MISSED; the fourth within twice that: held; four members and no more: MISSED.",
		"Too many: from 4 to 5 members, as said",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, &text)
		}
	}
}
