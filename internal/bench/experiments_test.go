//go:build linux

package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Only runs with a result have one.
func TestCourseOf(t *testing.T) {
	at := func(seconds int) *time.Time {
		return new(time.Date(2026, 11, 29, 0, 0, seconds, 0, time.UTC))
	}
	got := courseOf(map[string]domain.Run{
		"a": {State: domain.RunSucceeded, StartedAt: at(10), FinishedAt: at(20), Value: new(1.0)},
		"b": {State: domain.RunSucceeded, StartedAt: at(15), FinishedAt: at(50), Value: new(2.0), OutOfMemory: 2},
		"c": {State: domain.RunSucceeded, StartedAt: at(15), FinishedAt: at(55)},
		"d": {State: domain.RunOutOfMemory, StartedAt: at(15), FinishedAt: at(60), OutOfMemory: 3},
	}, *at(10))
	want := cardCourse{finished: 2, ranOut: 5, makespan: 40 * time.Second, mean: 25 * time.Second}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(cardCourse{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The bars follow from the figures in the table.
func TestCardTables(t *testing.T) {
	course := func(mean, finished int) []cardCourse {
		return []cardCourse{{
			most: 8, finished: finished, makespan: 100 * time.Second, mean: time.Duration(mean) * time.Second,
		}}
	}
	found := course(70, 50)
	found[0].best, found[0].settled = 9, true
	for mean, want := range map[int][]string{
		80: {
			"| 80 s | 0.80 | 8238 s | 1.00 | 4620 s | 0.69 |", "50 of 50 finish in each way: held",
			"of those with 37: held", "`progress` found 9 at a time, and settled.", "the 38th dies",
		},
		81: {"| 81 s | 0.81 |", "of those with 37: MISSED"},
	} {
		text := fmt.Sprint(cardTables([][]cardCourse{course(mean, 50), found, course(100, 50), found, course(100, 50)}))
		for _, phrase := range want {
			if !strings.Contains(text, phrase) {
				t.Errorf("with a mean of %d s, the tables don't say %q:\n%s", mean, phrase, text)
			}
		}
	}
	text := fmt.Sprint(cardTables([][]cardCourse{course(70, 50), found, course(100, 49), found, course(100, 50)}))
	if want := "50 of 50 finish in each way: MISSED"; !strings.Contains(text, want) {
		t.Errorf("the tables don't say %q:\n%s", want, text)
	}
}
