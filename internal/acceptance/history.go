//go:build linux

package acceptance

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// Recorded returns the recorded decisions of a cluster's policies.
func Recorded(t *testing.T, e engine.Store) []autoscale.Entry {
	t.Helper()
	stored, err := engine.Contents(context.WithoutCancel(t.Context()), e, autoscale.HistoryKind)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := autoscale.ReadHistory(stored, time.Now(), autoscale.Selection{})
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

// Outcomes returns a predicate for entries with this outcome, these counts before and after, and this text.
func Outcomes(outcome autoscale.Outcome, from, to int, says string) func(autoscale.Entry) bool {
	return func(e autoscale.Entry) bool {
		return e.Outcome == outcome && e.From == from && e.To == to && strings.Contains(e.Why()+e.OutcomeWhy, says)
	}
}

// Explain logs a policy's history as people read it.
func Explain(t *testing.T, program, policy string, where ...string) {
	t.Helper()
	args := slices.Concat([]string{"autoscale", "explain", "-n", "0", policy}, where)
	output, err := exec.CommandContext(context.WithoutCancel(t.Context()), program, args...).CombinedOutput()
	t.Logf("%s(%v)", output, err)
}
