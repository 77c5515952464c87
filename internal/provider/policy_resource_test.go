package provider

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/policy"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/policy/policytest"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/providertest"
)

func TestReadOfAutoscalingPolicy(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*providertest.Stub)
		gone   bool
	}{
		"gone": {
			func(e *providertest.Stub) { providertest.Drop[domain.AutoscalingPolicyDocument](e) }, true,
		},
		"gone with cluster": {func(e *providertest.Stub) { providertest.Drop[domain.ClusterDocument](e) }, true},
		"can't be read": {
			func(e *providertest.Stub) { e.Fails = providertest.Failures{"List policy": errors.New("disk full")} },
			false,
		},
		"nor its cluster": {
			func(e *providertest.Stub) { e.Fails = providertest.Failures{"Get cluster": errors.New("disk full")} },
			false,
		},
	} {
		stub := scaledStub(t, 2)
		tf := newTerraform(t, stub)
		state := tf.applyPolicy(tf.policy())
		test.change(stub)
		found, diagnostics := tf.read(thePolicy, state)
		if (found == nil) != test.gone || (len(diagnostics) == 0) != test.gone {
			t.Errorf("%s: read as %v (%v)", name, found, details(diagnostics))
		}
	}

	// Changes from outside are shown, and the plan reverts them.
	stub := scaledStub(t, 2)
	tf := newTerraform(t, stub)
	config := tf.policy()
	state := tf.applyPolicy(config)
	providertest.Change(stub, "g/worker", func(document *domain.AutoscalingPolicyDocument) {
		document.Spec.Min, document.Spec.Paused = 2, domain.PauseAll
	})
	found, diagnostics := tf.read(thePolicy, state)
	fatalOn(t, nil, diagnostics)
	if !found["min"].Equal(tftypes.NewValue(tftypes.Number, 2)) || !found["paused"].Equal(providertest.Text("all")) {
		t.Errorf("read as %v", found)
	}
	planned := tf.planPolicy(config, found)
	if !planned["min"].Equal(state["min"]) || !planned["paused"].IsNull() || !planned["id"].Equal(state["id"]) {
		t.Errorf("planned as %v", planned)
	}
}

func TestCreateAndDeleteOfAutoscalingPolicy(t *testing.T) {
	stub := scaledStub(t, 2)
	tf := newTerraform(t, stub)
	config := tf.policy()
	state := tf.applyPolicy(config)
	stored := providertest.Documents[domain.AutoscalingPolicyDocument](stub)
	if !state["id"].Equal(providertest.Text("lab/g/worker")) || !slices.Contains(stub.Calls, "StartController") ||
		stored["g/worker"].Before != 2 {
		t.Errorf("got %v, by %v; stored is %+v", state, stub.Calls, stored)
	}
	adopted, diagnostics := tf.apply(thePolicy, config, nil, tf.planPolicy(config, nil))
	if adopted == nil || len(diagnostics) != 1 || diagnostics[0].Summary != "Autoscaling policy adopted" ||
		diagnostics[0].Severity != tfprotov6.DiagnosticSeverityWarning {
		t.Errorf("adopted: got %v (%v)", adopted, details(diagnostics))
	}

	// Another run has created one before this apply.
	planned := newTerraform(t, scaledStub(t, 2)).planPolicy(tf.policy(atLeast(2)), nil)
	none, diagnostics := tf.apply(thePolicy, tf.policy(atLeast(2)), nil, planned)
	if none != nil || len(diagnostics) != 1 || diagnostics[0].Summary != "Autoscaling policy already exists" ||
		!strings.Contains(diagnostics[0].Detail, "terraform import <address> lab/g/worker") {
		t.Errorf("another: got %v (%v)", none, details(diagnostics))
	}
	stub.Fails = providertest.Failures{"Put policy": engine.ErrConflict}
	_, diagnostics = tf.apply(thePolicy, tf.policy(atLeast(2)), state, tf.planPolicy(tf.policy(atLeast(2)), state))
	refuses(t, "a conflict", diagnostics, "Another run changed the same object at the same time")
	stub.Fails = nil

	gone, diagnostics := tf.apply(thePolicy, nil, state, nil)
	fatalOn(t, nil, diagnostics)
	if stored := providertest.Documents[domain.AutoscalingPolicyDocument](stub); gone != nil || len(stored) > 0 {
		t.Errorf("got %v, with the policies %v", gone, stored)
	}
	gone, diagnostics = tf.apply(thePolicy, nil, state, nil)
	fatalOn(t, nil, diagnostics)
	if gone != nil {
		t.Errorf("once more: got %v", gone)
	}
}

func TestValidateAutoscalingPolicy(t *testing.T) {
	tf := newTerraform(t, &providertest.Stub{})
	unknown := func(v tftypes.Value) tftypes.Value { return tftypes.NewValue(v.Type(), tftypes.UnknownValue) }
	for name, test := range map[string]struct {
		policy func(*policy.Model)
		open   []string
		want   []string
	}{
		"valid":              {func(*policy.Model) {}, nil, nil},
		"bounds upside down": {atLeast(10), nil, []string{"Invalid number of members"}},
		"of a group that is not known": {
			atLeast(10), []string{"cluster", "group", "role"}, []string{"Invalid number of members"},
		},
		"of metrics that are not known": {atLeast(10), []string{"metrics"}, []string{"Invalid number of members"}},
		"a bad role": {
			func(m *policy.Model) { m.Role = types.StringValue("Worker") }, nil, []string{"Invalid role name"},
		},
		"a duration that is none": {
			func(m *policy.Model) { m.Interval = types.StringValue("soon") }, nil, []string{"Invalid duration"},
		},
		"a schedule that is none": {func(m *policy.Model) {
			m.Schedules = map[string]policy.ScalingScheduleModel{
				"day": {Start: "8:00", End: "0 18 * * *", TimeZone: nil, Count: 4},
			}
		}, nil, []string{"Invalid time"}},
		"of a cluster that is not known": {func(*policy.Model) {}, []string{"cluster"}, nil},
		"everything there is to say of it": {func(m *policy.Model) {
			full := policytest.Full()
			full.ID, full.Timeouts = m.ID, m.Timeouts
			*m = full
		}, nil, nil},
	} {
		config := tf.policy(test.policy)
		for _, attribute := range test.open {
			config[attribute] = unknown(config[attribute])
		}
		resp, err := tf.server.ValidateResourceConfig(t.Context(),
			&tfprotov6.ValidateResourceConfigRequest{TypeName: thePolicy, Config: tf.object(thePolicy, config)})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, d := range resp.Diagnostics {
			got = append(got, d.Summary)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, details(resp.Diagnostics), test.want)
		}
	}
}
