package provider

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/gpupool"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/providertest"
)

// TestPlanWithoutResidents: a plan warns if a controller or agent that it needs is not running: why, what to
// do, and what does not work.
func TestPlanWithoutResidents(t *testing.T) {
	failing := domain.Resident{State: domain.ResidentFailing, Host: "a", Error: "no socket", Advice: "Set socket."}
	running := domain.Resident{State: domain.ResidentRunning}
	down := domain.Residents{Controller: failing, Agents: map[string]domain.Resident{"a": failing, "b": running}}
	const controller, agent = "The controller isn't running on host a: no socket. Set socket.", "The agent isn't running on host a: no socket. Set socket."
	plain := func(tf terraform, stub *providertest.Stub) []*tfprotov6.Diagnostic {
		found := stub.Running
		stub.Running = domain.Residents{} // while it is created
		const name = "trainyard_cluster"
		config := tf.config(name, map[string]tftypes.Value{"name": providertest.Text("lab")})
		planned, diagnostics := tf.plan(name, config, nil)
		fatalOn(t, nil, diagnostics)
		state, diagnostics := tf.applyCluster(config, nil, planned)
		fatalOn(t, nil, diagnostics)
		stub.Running = found
		_, diagnostics = tf.plan(name, config, state)
		return diagnostics
	}
	for name, test := range map[string]struct {
		stub  func() *providertest.Stub
		found domain.Residents
		plan  func(tf terraform, stub *providertest.Stub) []*tfprotov6.Diagnostic
		at    string
		says  []string // empty for no warning
	}{
		"a cluster": {
			stub: func() *providertest.Stub { return &providertest.Stub{} }, found: down, plan: plain,
			says: []string{`Controller or agents of cluster "lab" not running`, controller, agent},
		},
		"a cluster with all": {
			stub:  func() *providertest.Stub { return &providertest.Stub{} },
			found: domain.Residents{Controller: running}, plan: plain,
		},
		"a cluster where it is about to": {
			stub:  func() *providertest.Stub { return &providertest.Stub{} },
			found: domain.Residents{Controller: domain.Resident{State: domain.ResidentStarting}}, plan: plain,
		},
		"a group": {
			stub: func() *providertest.Stub {
				return providertest.Set(&providertest.Stub{}, providertest.LabOf("a", "b"))
			}, found: down,
			plan: func(tf terraform, _ *providertest.Stub) []*tfprotov6.Diagnostic {
				_, diagnostics := tf.plan("trainyard_group", tf.group("g", role{replicas: 2}), nil)
				return diagnostics
			},
			at: "completion", says: []string{
				`No controller for group "g"`, controller,
				"failed members are not restarted, and completion goes undetected.",
			},
		},
		"a group that the engine restarts": {
			stub: func() *providertest.Stub {
				stub := &providertest.Stub{Particular: engine.Traits{Restarts: true}}
				return providertest.Set(stub, providertest.LabOf("a", "b"))
			}, found: down,
			plan: func(tf terraform, _ *providertest.Stub) []*tfprotov6.Diagnostic {
				_, diagnostics := tf.plan("trainyard_group", tf.group("g", role{replicas: 2}), nil)
				return diagnostics
			},
			at: "completion", says: []string{"Until the controller runs, completion goes undetected."},
		},
		"a policy": {
			stub: func() *providertest.Stub { return scaledStub(t, 2) }, found: down,
			plan: func(tf terraform, _ *providertest.Stub) []*tfprotov6.Diagnostic {
				_, diagnostics := tf.plan(thePolicy, tf.policy(), nil)
				return diagnostics
			},
			at: "algorithm", says: []string{
				`No controller for the autoscaling policy of role "worker"`, controller,
				`role "worker" of group "g" keeps its current size`,
			},
		},
		"a sweep": {
			stub: func() *providertest.Stub {
				return providertest.Set(&providertest.Stub{}, providertest.LabOf("a", "b"))
			}, found: down,
			plan: func(tf terraform, _ *providertest.Stub) []*tfprotov6.Diagnostic {
				_, diagnostics := tf.plan(theSweep, tf.sweep(), nil)
				return diagnostics
			},
			at:   "runs",
			says: []string{`No controller for sweep "lr"`, controller, "Until the controller runs, no run is started."},
		},
		"a pool of the host": {
			stub: gpuStub, found: down,
			plan: func(tf terraform, _ *providertest.Stub) []*tfprotov6.Diagnostic {
				_, diagnostics := tf.plan(theGPUPool, tf.gpuPool("p", named(t, map[string][]int{"a": {1}})), nil)
				return diagnostics
			},
			at: "slots", says: []string{
				`GPUs of pool "p" are not monitored`, agent,
				"GPU failures and memory used by others go undetected there",
			},
		},
		"a pool that takes any host": {
			stub: gpuStub, found: down,
			plan: func(tf terraform, _ *providertest.Stub) []*tfprotov6.Diagnostic {
				_, diagnostics := tf.plan(theGPUPool, tf.gpuPool("p", selected(t, gpupool.SelectorModel{})), nil)
				return diagnostics
			},
			at: "slots", says: []string{agent},
		},
		"a pool of another host": {
			stub: gpuStub, found: down,
			plan: func(tf terraform, _ *providertest.Stub) []*tfprotov6.Diagnostic {
				_, diagnostics := tf.plan(theGPUPool, tf.gpuPool("p", named(t, map[string][]int{"b": {0}})), nil)
				return diagnostics
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			stub := test.stub()
			tf := newTerraform(t, stub)
			stub.Running = test.found
			var warned []string
			for _, d := range test.plan(tf, stub) {
				if d.Severity != tfprotov6.DiagnosticSeverityWarning {
					t.Errorf("an error: %s: %s", d.Summary, d.Detail)
				}
				warned = append(warned, d.Summary+": "+d.Detail)
				if at := d.Attribute; test.at != "" && (at == nil || !strings.Contains(at.String(), test.at)) {
					t.Errorf("the warning is at %s, want %s", at, test.at)
				}
			}
			if want := min(len(test.says), 1); len(warned) != want {
				t.Fatalf("%d warnings, want %d: %q", len(warned), want, warned)
			}
			for _, phrase := range test.says {
				if !strings.Contains(warned[0], phrase) {
					t.Errorf("the warning does not say %q: %s", phrase, warned[0])
				}
			}
		})
	}
}
