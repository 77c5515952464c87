package controller

import (
	"errors"
	"testing"
)

// TestFaultsAreLoggedOnce: a fault is news unless it is the group's last one.
func TestFaultsAreLoggedOnce(t *testing.T) {
	down, full := errors.New("host a is down"), errors.New("no room")
	logged := faults{}
	for i, step := range []struct {
		group string
		fault error
		news  bool
	}{
		{"mnist", nil, false},
		{"mnist", down, true},
		{"mnist", errors.New("host a is down"), false},
		{"other", down, true},
		{"mnist", full, true},
		{"mnist", nil, true},
		{"mnist", full, true},
	} {
		if got := logged.news(step.group, step.fault); got != step.news {
			t.Errorf("step %d: %v of group %s is news: %v", i, step.fault, step.group, got)
		}
	}
}
