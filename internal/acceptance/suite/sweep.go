//go:build linux

package suite

import (
	"strings"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
	"github.com/trainyard/terraform-provider-trainyard/internal/sweep"
)

// swept waits until the sweep satisfies a condition.
func (l *Lab) swept(what string, as func(reconcile.Sweep, sweep.Summary) bool) {
	l.Helper()
	acctest.Eventually(l, what, func() bool {
		found, err := reconcile.Reconciler{Engine: l.Open()}.SweepRuns(l.Context(), "lr")
		if reconcile.Passes(err) {
			return false
		}
		l.must(err)
		return as(found, sweep.Summarise(found.Document, found.Spec, found.Runs))
	})
}

// attempts returns a check of how often each run was started.
func (l *Lab) attempts(want map[string]int) resource.TestCheckFunc {
	return func(*terraform.State) error {
		found, err := reconcile.Reconciler{Engine: l.Open()}.SweepRuns(l.Context(), "lr")
		l.must(err)
		got := map[string]int{}
		for key := range found.Spec.Runs {
			got[key] = found.Runs[key].Attempts
		}
		return acceptance.Differences(want, got)
	}
}

// A sweep is created, and unchanged once its runs have ended; adding, changing or removing a run affects only that one;
// triggers restart failed runs; the sweep is recreated when it is gone, and imported; the plan after each step is
// empty.
func aSweep(l *Lab) {
	const waits, failed = `wait_for = "completed"`, `rerun = "failed"`
	ends := map[string]string{"a": "exit:0", "b": "print:score 2", "c": "print:score 3"}
	with := func(changes map[string]string) map[string]string {
		all := map[string]string{}
		for _, m := range []map[string]string{ends, changes} {
			for key, step := range m {
				if all[key] = step; step == "" {
					delete(all, key)
				}
			}
		}
		return all
	}
	config := func(steps map[string]string, attributes ...string) string {
		return l.config(acceptance.Runs(steps,
			strings.Join(append(attributes, `objective = { pattern = "^score ([0-9]+)" }`), "\n")), acceptance.ReadRuns)
	}
	known := func(check knownvalue.Check, steps ...string) statecheck.StateCheck {
		return statecheck.ExpectKnownValue(acceptance.TheRuns, acceptance.Attribute(steps[0], steps[1:]...), check)
	}
	update := plancheck.ExpectResourceAction(acceptance.TheSweep, plancheck.ResourceActionUpdate)
	l.test(
		resource.TestStep{
			Config: config(ends, waits),
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue(acceptance.TheSweep, tfjsonpath.New("id"),
					knownvalue.StringExact(l.id("lr"))),
				known(knownvalue.Int64Exact(3), "total"), known(knownvalue.Int64Exact(3), "counts", "succeeded"),
				known(knownvalue.Bool(true), "ended"),
				known(knownvalue.StringExact("c"), "best"), known(texts("c", "b"), "ranking"),
				known(knownvalue.Float64Exact(2), "runs", "b", "value"),
				known(knownvalue.Int64Exact(0), "runs", "a", "exit_code"),
				known(knownvalue.StringExact("lr-a-0"), "runs", "a", "member"),
				known(knownvalue.StringExact(l.Host), "runs", "a", "host"),
			},
			Check: l.attempts(map[string]int{"a": 1, "b": 1, "c": 1}),
		},
		resource.TestStep{
			Config:           config(with(map[string]string{"b": "", "c": "print:score 1", "d": "exit:0"}), waits),
			ConfigPlanChecks: acceptance.Planned(update),
			ConfigStateChecks: []statecheck.StateCheck{
				known(texts("c"), "ranking"), known(knownvalue.Int64Exact(3), "counts", "succeeded"),
			},
			Check: l.attempts(map[string]int{"a": 1, "c": 1, "d": 1}),
		},
		resource.TestStep{
			Config: config(with(map[string]string{"d": "exit:7"}), waits, failed),
			ConfigStateChecks: []statecheck.StateCheck{
				known(knownvalue.Int64Exact(1), "counts", "failed"),
				known(knownvalue.StringExact("exit code 7"), "runs", "d", "reason"),
			},
		},
		resource.TestStep{
			Config:           config(with(map[string]string{"d": "exit:7"}), failed),
			ConfigPlanChecks: acceptance.Planned(update), // it no longer waits
			Check:            l.attempts(map[string]int{"a": 1, "b": 1, "c": 1, "d": 1}),
		},
		resource.TestStep{
			Config: config(with(map[string]string{"d": "exit:7"}), failed, `triggers = { again = "2" }`),
			Check: func(*terraform.State) error {
				l.swept("the run that failed to be started anew, and no other",
					func(found reconcile.Sweep, s sweep.Summary) bool {
						return s.Ended() && found.Runs["d"].Revision == found.Document.Revision &&
							found.Runs["a"].Revision < found.Document.Revision
					})
				return nil
			},
		},
		resource.TestStep{
			PreConfig: func() { l.must(reconcile.Reconciler{Engine: l.Open()}.DeleteSweep(l.Context(), "lr", nil)) },
			Config:    config(ends, waits), ConfigPlanChecks: acceptance.Planned(
				plancheck.ExpectResourceAction(acceptance.TheSweep, plancheck.ResourceActionCreate),
			),
		},
		resource.TestStep{
			Config: config(ends, waits), ResourceName: acceptance.TheSweep, ImportState: true,
			ImportStateId: l.importID("lr"), ImportStateVerify: true,
		},
		resource.TestStep{
			Config: config(ends, waits), ResourceName: acceptance.TheSweep, ImportState: true, ImportStateId: "lr",
			ExpectError: acceptance.Says(`"lr" is not the ID of a sweep`),
		},
	)
}
