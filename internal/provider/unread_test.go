package provider

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/gpupool"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/providertest"
)

// failingAfter returns the engines of a stub, of which one call fails once, the first after another call.
func failingAfter(e providertest.Stubbed, write, read string) engine.Registry {
	written := false
	intercept := func(ctx context.Context, call engine.Call, do func() error) error {
		if written && call.Name == read {
			written = false
			return errors.New("disk full")
		}
		written = written || call.Name == write
		return e.Intercept(ctx, call, do)
	}
	driver := engine.Driver{Open: func(domain.ClusterRef, engine.Settings) (engine.Engine, error) {
		return engine.Intercept(e, intercept), nil
	}}
	return engine.Registry{"process": driver, "swarm": driver}
}

// TestCreateThatCannotBeRead: what was created is in the state even if the read after that fails, and the next refresh
// completes it.
func TestCreateThatCannotBeRead(t *testing.T) {
	source := t.TempDir()
	writeFile(t, filepath.Join(source, "train.py"), "pass\n")
	for name, test := range map[string]struct {
		engine      func() providertest.Stubbed
		write, read string
		config      func(tf terraform) map[string]tftypes.Value
		id          string
	}{
		theFiles: {
			func() providertest.Stubbed {
				return &filesEngine{
					Stub:  providertest.Set(&providertest.Stub{}, providertest.LabOf("gpu1")),
					found: map[string]map[string][]engine.FileFault{},
				}
			}, "Put files", "Get files",
			func(tf terraform) map[string]tftypes.Value {
				return tf.config(theFiles, map[string]tftypes.Value{
					"name": providertest.Text("code"), "source": providertest.Text(source),
					"cluster": labReference(nil),
				})
			}, "lab/code",
		},
		theGPUPool: {
			func() providertest.Stubbed { return gpuStub() }, "Put gpu-pool", "List gpu-pool",
			func(tf terraform) map[string]tftypes.Value {
				return tf.gpuPool("p", selected(t, gpupool.SelectorModel{}))
			}, "lab/p",
		},
		thePolicy: {
			func() providertest.Stubbed { return scaledStub(t, 2) }, "Put policy", "List policy",
			func(tf terraform) map[string]tftypes.Value { return tf.policy() }, "lab/g/worker",
		},
	} {
		tf := terraformOn(t, failingAfter(test.engine(), test.write, test.read))
		config := test.config(tf)
		planned, diagnostics := tf.plan(name, config, nil)
		fatalOn(t, nil, diagnostics)
		for _, a := range tf.schemas[name].Block.Attributes { // as if its hosts were not known yet
			if a.Computed && (!a.Optional || a.Name == "devices") {
				planned[a.Name] = tftypes.NewValue(a.ValueType(), tftypes.UnknownValue)
			}
		}
		state, diagnostics := tf.apply(name, config, nil, planned)
		refuses(t, name, diagnostics, "could not be read: disk full")
		if state == nil {
			t.Errorf("%s: nothing is in the state", name)
			continue
		}
		if got := textOf(t, state["id"]); got != test.id {
			t.Errorf("%s: its ID is %q, not %q", name, got, test.id)
		}
		for attribute, value := range state {
			if !value.IsFullyKnown() {
				t.Errorf("%s: %s is not known after the apply", name, attribute)
			}
		}
		found, diagnostics := tf.read(name, state)
		fatalOn(t, nil, diagnostics)
		again, diagnostics := tf.plan(name, config, found)
		fatalOn(t, nil, diagnostics)
		for attribute, value := range again {
			if !value.Equal(found[attribute]) {
				t.Errorf("%s: after a refresh, %s is %s, and planned as %s", name, attribute, found[attribute], value)
			}
		}
	}
}
