package provider

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/policy"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/providertest"
)

// Refresh and plan warn, once, of guards that have never had a value. A plan doesn't warn of those that the policy no
// longer has, or that it changes.
func TestPlanWarnsOfSilentGuards(t *testing.T) {
	asking := func(path string) func(*policy.Model) {
		return func(m *policy.Model) {
			http := &policy.HTTPQueueModel{URL: "http://spark:8080/json/", Path: &path}
			m.Guards = &policy.ScalingGuardsModel{
				Busy:    &policy.BusyGuardModel{GuardSourceModel: policy.GuardSourceModel{HTTP: http}},
				AtLeast: &policy.GuardSourceModel{HTTP: http},
			}
		}
	}
	stub := scaledStub(t, 2)
	tf := newTerraform(t, stub)
	config := tf.policy(asking("activeapps.#"))
	silent := domain.SilentGuardsDocument{Policy: "g/worker", Guards: []domain.SilentGuard{
		{
			Name: domain.GuardBusyHTTP, What: "activeapps.# of http://spark:8080/json/",
			Since: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), Why: "HTTP 404",
		},
	}}
	providertest.Set(stub, silent) // of an earlier policy
	state := tf.applyPolicy(config)
	const says = `Guard of autoscaling policy "g/worker" has never had a value: guards.busy.http: ` +
		"queried since 2026-11-20T12:00:00Z, it has never had a value, so no members are removed: HTTP 404. " +
		"Check its URL and path\n\nSee https://registry.terraform.io/providers/trainyard/trainyard/latest" +
		"/docs/guides/troubleshooting#guard-of-autoscaling-policy--has-never-had-a-value"
	expect := func(what string, diagnostics []*tfprotov6.Diagnostic, says string) {
		t.Helper()
		fails := slices.ContainsFunc(diagnostics, func(d *tfprotov6.Diagnostic) bool {
			return d.Severity == tfprotov6.DiagnosticSeverityError
		})
		if message := strings.Join(details(diagnostics), "\n"); message != says || fails {
			t.Errorf("%s: got %q, want %q", what, message, says)
		}
	}
	for name, test := range map[string]struct {
		config map[string]tftypes.Value
		says   string
	}{
		"as it is":       {config, says},
		"another path":   {config: tf.policy(asking("apps.#"))},
		"without guards": {config: tf.policy()},
		"destroyed":      {},
	} {
		tf := newTerraform(t, stub) // another run
		planned, diagnostics := tf.plan(thePolicy, test.config, state)
		expect("a plan of the policy "+name, diagnostics, test.says)
		if test.says != "" && !planned["id"].Equal(state["id"]) {
			t.Errorf("%s: the plan is not empty", name)
		}
	}

	// A refresh warns as well; the plan that follows doesn't repeat that, and makes no further call.
	tf = newTerraform(t, stub)
	stub.Calls = nil
	_, diagnostics := tf.read(thePolicy, state)
	expect("a refresh", diagnostics, says)
	_, diagnostics = tf.plan(thePolicy, config, state)
	expect("the plan after it", diagnostics, "")
	reads := slices.DeleteFunc(slices.Clone(stub.Calls), func(call string) bool {
		return !strings.Contains(call, "untold-guards")
	})
	if len(reads) != 1 {
		t.Errorf("refresh and plan read the silent guards by %q", reads)
	}

	stub.Fails = providertest.Failures{
		"Get untold-guards": errors.New("disk full"), "List untold-guards": errors.New("disk full"),
	}
	_, diagnostics = newTerraform(t, stub).plan(thePolicy, config, state)
	refuses(t, "a plan of what can't be read", diagnostics, "disk full")
	_, diagnostics = newTerraform(t, stub).read(thePolicy, state)
	refuses(t, "a refresh of what can't be read", diagnostics, "disk full")
}
