package provider

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/gpupool"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/providertest"
)

func TestReadOfGPUPool(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*providertest.Stub)
		gone   bool
	}{
		"gone":              {func(e *providertest.Stub) { providertest.Drop[domain.GPUPoolDocument](e) }, true},
		"gone with cluster": {func(e *providertest.Stub) { providertest.Drop[domain.ClusterDocument](e) }, true},
		"can't be read": {
			func(e *providertest.Stub) { e.Fails = providertest.Failures{"List gpu-pool": errors.New("disk full")} },
			false,
		},
	} {
		stub := gpuStub()
		tf := newTerraform(t, stub)
		state := tf.applyPool(tf.gpuPool("p", named(t, map[string][]int{"a": {4, 5}})))
		test.change(stub)
		found, diagnostics := tf.read(theGPUPool, state)
		if (found == nil) != test.gone || (len(diagnostics) == 0) != test.gone {
			t.Errorf("%s: read as %v (%v)", name, found, details(diagnostics))
		}
	}
}

// A pool that was selected from the hosts that answered says so.
func TestCreateOfGPUPoolWithoutAHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stub := gpuStub()
		stub.HostGPUs["b"] = domain.HostGPUs{Unknown: "no agent"}
		tf := newTerraform(t, stub)
		config := tf.gpuPool("p", selected(t, gpupool.SelectorModel{}))
		planned, _ := tf.plan(theGPUPool, config, nil)
		state, diagnostics := tf.apply(theGPUPool, config, nil, planned)
		if len(diagnostics) != 1 || diagnostics[0].Severity != tfprotov6.DiagnosticSeverityWarning ||
			!strings.Contains(diagnostics[0].Detail, "host b: no agent") {
			t.Errorf("diagnostics: %v", details(diagnostics))
		}
		if want := tftypes.NewValue(tftypes.Number, 8); state == nil || !state["slots"].Equal(want) {
			t.Errorf("the state is %v", state)
		}
	})
}

// A pool that was created but is missing in the state is adopted; one with another specification is not.
func TestCreateOfGPUPoolThatExists(t *testing.T) {
	tf := newTerraform(t, gpuStub())
	config := tf.gpuPool("p", named(t, map[string][]int{"a": {4, 5}}))
	tf.applyPool(config)
	state, diagnostics := tf.apply(theGPUPool, config, nil, tf.planPool(config, nil))
	if state == nil || len(diagnostics) != 1 || diagnostics[0].Severity != tfprotov6.DiagnosticSeverityWarning ||
		diagnostics[0].Summary != "GPU pool adopted" {
		t.Errorf("adopted: got %v (%v)", state, details(diagnostics))
	}
	config = tf.gpuPool("p", named(t, map[string][]int{"a": {4}}))
	state, diagnostics = tf.apply(theGPUPool, config, nil, tf.planPool(config, nil))
	if state != nil || len(diagnostics) != 1 ||
		!strings.Contains(diagnostics[0].Detail, `already has a GPU pool "p" with another specification`) {
		t.Errorf("another: got %v (%v)", state, details(diagnostics))
	}
}

func TestDeleteOfGPUPoolInUse(t *testing.T) {
	stub := gpuStub()
	tf := newTerraform(t, stub)
	state := tf.applyPool(tf.gpuPool("p", named(t, map[string][]int{"a": {4, 5}})))
	providertest.Set(stub, domain.GroupDocument{
		Spec: domain.Group{Name: "job", Roles: map[string]domain.Role{"worker": {GPUs: &domain.GPURequest{Pool: "p"}}}},
	})
	left, diagnostics := tf.apply(theGPUPool, nil, state, nil)
	if left == nil || len(diagnostics) != 1 || diagnostics[0].Summary != "GPU pool in use" ||
		!strings.Contains(diagnostics[0].Detail, `"p" of cluster "lab" is in use by`) {
		t.Errorf("got %v (%v)", left, details(diagnostics))
	}
	providertest.Drop[domain.GroupDocument](stub)
	left, diagnostics = tf.apply(theGPUPool, nil, state, nil)
	if stored := providertest.Documents[domain.GPUPoolDocument](stub); left != nil || len(diagnostics) > 0 ||
		len(stored) > 0 {
		t.Errorf("got %v (%v), with the pools %v", left, details(diagnostics), stored)
	}
}
