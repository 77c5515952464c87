package main

import (
	"strings"
	"testing"
)

// TestEmptyCommand: an empty first argument, as of an unset variable, is an unknown command.
func TestEmptyCommand(t *testing.T) {
	if err := run([]string{""}); err == nil || !strings.Contains(err.Error(), `unknown command ""`) {
		t.Errorf("it ends with %v", err)
	}
}
