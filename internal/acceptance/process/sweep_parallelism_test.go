//go:build linux

package process_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
	"github.com/trainyard/terraform-provider-trainyard/internal/sweep"
)

// Real processes slow one another down, and three of them get the most done. The sweep finds that from their output,
// even though its controller is killed meanwhile, and a plan is then empty.
func TestAccSweepFindsParallelism(t *testing.T) {
	l := newLab(t)
	folder := t.TempDir()
	steps := map[string]string{}
	for i := range 80 {
		steps[fmt.Sprintf("run-%02d", i)] = fmt.Sprintf("share:%s,10,1,1.8,2.4,1.6,1.2,1", folder)
	}
	config := l.config(theCluster, acceptance.Runs(steps, `resources = { cpus = 0.01 }
  progress  = { pattern = "^step (?P<step>[0-9]+)", settle = "3s" }`), acceptance.ReadRuns)
	found := func(what string, as func(p domain.SweepParallelism) bool) domain.SweepParallelism {
		return l.swept(what, func(found reconcile.Sweep, s sweep.Summary) bool {
			if found.Parallelism.Unknown != "" || s.Ended() {
				t.Fatalf("%+v, with %s", found.Parallelism, s)
			}
			return as(found.Parallelism)
		}).Parallelism
	}
	l.test(
		resource.TestStep{Config: config},
		resource.TestStep{
			PreConfig: func() {
				found("two at a time to be better than one",
					func(p domain.SweepParallelism) bool { return p.Best >= 2 })
				l.killResident("controller")
				p := found("the best number to be found", func(p domain.SweepParallelism) bool { return p.Settled })
				t.Logf("%d at a time: %v", p.Level, p.Throughput)
				if p.Level < 2 || p.Level > 4 {
					t.Errorf("%d at a time are said to be best, and 3 are", p.Level)
				}
				l.swept("as many to be on",
					func(_ reconcile.Sweep, s sweep.Summary) bool { return s.Counts[domain.RunRunning] == p.Level })
				l.must(os.WriteFile(filepath.Join(folder, "gate"), nil, 0o600))
				l.swept("all runs to succeed",
					func(_ reconcile.Sweep, s sweep.Summary) bool { return s.Counts[domain.RunSucceeded] == s.Total })
			},
			Config: config,
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue(acceptance.TheRuns, acceptance.Attribute("parallelism", "settled"),
					knownvalue.Bool(true)),
				statecheck.ExpectKnownValue(acceptance.TheRuns, acceptance.Attribute("parallelism", "throughput", "2"),
					knownvalue.NotNull()),
			},
		},
	)
}
