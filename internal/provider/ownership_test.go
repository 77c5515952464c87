package provider

import (
	"errors"
	"maps"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/cluster"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/providertest"
)

// owned is a resource whose instances come and go.
type owned struct {
	terraform
	stub   *providertest.Stub
	name   string
	config map[string]tftypes.Value
	// changed is another configuration, an update of the first.
	changed map[string]tftypes.Value
	exists  func() bool
}

// instance is an instance of a resource in Terraform's state.
type instance struct {
	state   map[string]tftypes.Value
	private []byte
}

// create creates an instance, or adopts what exists.
func (o owned) create() (instance, []*tfprotov6.Diagnostic) {
	o.t.Helper()
	planned, diagnostics := o.plan(o.name, o.config, nil)
	fatalOn(o.t, nil, diagnostics)
	state, private, diagnostics := o.applyKnowing(nil, o.name, o.config, nil, planned)
	return instance{state, private}, diagnostics
}

// created is create without errors.
func (o owned) created() instance {
	o.t.Helper()
	i, diagnostics := o.create()
	for _, d := range diagnostics {
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			o.t.Fatalf("%s: %s", d.Summary, d.Detail)
		}
	}
	return i
}

// update changes the object through an instance.
func (o owned) update(i instance) instance {
	o.t.Helper()
	planned, diagnostics := o.plan(o.name, o.changed, i.state)
	fatalOn(o.t, nil, diagnostics)
	state, private, diagnostics := o.applyKnowing(i.private, o.name, o.changed, i.state, planned)
	fatalOn(o.t, nil, diagnostics)
	return instance{state, private}
}

// imported is an instance after an import: a read without private state.
func (o owned) imported(i instance) instance {
	o.t.Helper()
	resp, err := o.server.ReadResource(o.t.Context(),
		&tfprotov6.ReadResourceRequest{TypeName: o.name, CurrentState: o.object(o.name, i.state)})
	fatalOn(o.t, err, resp.Diagnostics)
	return instance{o.attributes(o.name, resp.NewState), resp.Private}
}

// expectSpared fails unless a destroy of an instance leaves the object alone, and says so.
func (o owned) expectSpared(i instance) {
	o.t.Helper()
	state, _, diagnostics := o.applyKnowing(i.private, o.name, nil, i.state, nil)
	if state != nil || len(diagnostics) != 1 || diagnostics[0].Severity != tfprotov6.DiagnosticSeverityWarning ||
		diagnostics[0].Summary != "Belongs to another instance" {
		o.t.Errorf("the destroy of a former instance: %v (%v)", state, details(diagnostics))
	}
	if !o.exists() {
		o.t.Fatal("the destroy of a former instance removed the object")
	}
}

// expectRemoved fails unless a destroy of an instance removes the object, and nothing is left of it.
func (o owned) expectRemoved(i instance) {
	o.t.Helper()
	state, _, diagnostics := o.applyKnowing(i.private, o.name, nil, i.state, nil)
	if left := providertest.Documents[domain.Ownership](o.stub); state != nil || len(diagnostics) > 0 || o.exists() ||
		len(left) > 0 {
		o.t.Errorf("after a destroy: %v (%v), with the records %v", state, details(diagnostics), left)
	}
}

// ownedResources are the resources that a stub can create.
var ownedResources = map[string]func(t *testing.T) owned{
	"cluster": func(t *testing.T) owned {
		stub := &providertest.Stub{}
		tf := newTerraform(t, stub)
		return owned{
			tf, stub, "trainyard_cluster", tf.swarm(nil),
			tf.swarm(func(m *cluster.Model) { delete(m.Hosts, "gpu2") }),
			func() bool { return len(providertest.Documents[domain.ClusterDocument](stub)) > 0 },
		}
	},
	"GPU pool": func(t *testing.T) owned {
		stub := gpuStub()
		tf := newTerraform(t, stub)
		return owned{
			tf, stub, theGPUPool, tf.gpuPool("p", named(t, map[string][]int{"a": {4, 5}})),
			tf.gpuPool("p", named(t, map[string][]int{"a": {4}})),
			func() bool { return len(providertest.Documents[domain.GPUPoolDocument](stub)) > 0 },
		}
	},
	"policy": func(t *testing.T) owned {
		stub := scaledStub(t, 2)
		tf := newTerraform(t, stub)
		return owned{
			tf, stub, thePolicy, tf.policy(), tf.policy(atLeast(2)),
			func() bool { return len(providertest.Documents[domain.AutoscalingPolicyDocument](stub)) > 0 },
		}
	},
	"image": func(t *testing.T) owned {
		file, _ := archiveFile(t, "")
		other, _ := archiveFile(t, "")
		l := newImageLab(t, "gpu1")
		return owned{
			l.terraform, l.engine.Stub, theImage, l.archive(file), l.archive(other),
			func() bool { return len(l.engine.found) > 0 },
		}
	},
}

// An object belongs to the instance of a resource that created, adopted or changed it last. A destroy of any other
// instance leaves it alone.
func TestOwnership(t *testing.T) {
	for name, run := range map[string]func(o owned){
		"replaced before it is destroyed": func(o owned) {
			former := o.created()
			replacement := o.created()
			o.expectSpared(former)
			o.expectRemoved(replacement)
		},
		"replaced again, after a failure in between": func(o owned) {
			first, second, third := o.created(), o.created(), o.created()
			o.expectSpared(first)
			o.expectSpared(second)
			o.expectRemoved(third)
		},
		"changed by the former instance": func(o owned) {
			former := o.created()
			adopter := o.created()
			former = o.update(former)
			o.expectSpared(adopter)
			o.expectRemoved(former)
		},
		"imported": func(o owned) { o.expectRemoved(o.imported(o.created())) },
		"imported, then adopted": func(o owned) {
			imported := o.imported(o.created())
			adopter := o.created()
			o.expectSpared(imported)
			o.expectRemoved(adopter)
		},
		"former instance refreshed": func(o owned) {
			former := o.created()
			adopter := o.created()
			resp, err := o.server.ReadResource(o.t.Context(), &tfprotov6.ReadResourceRequest{
				TypeName: o.name, CurrentState: o.object(o.name, former.state), Private: former.private,
			})
			fatalOn(o.t, err, resp.Diagnostics)
			former.private = resp.Private
			o.expectSpared(former)
			o.expectRemoved(adopter)
		},
		"stored before ownership was recorded": func(o owned) {
			i := o.created()
			providertest.Drop[domain.Ownership](o.stub)
			o.expectRemoved(o.imported(i))
		},
		"without a token": func(o owned) { o.expectRemoved(instance{state: o.created().state}) },
		"not recorded": func(o owned) {
			former := o.created()
			o.stub.Fails = providertest.Failures{"Put ownership": errors.New("disk full")}
			adopter, diagnostics := o.create()
			o.stub.Fails = nil
			if last := diagnostics[len(diagnostics)-1]; adopter.state == nil ||
				last.Summary != "Unable to record the owner" {
				o.t.Errorf("got %v (%v)", adopter.state, details(diagnostics))
			}
			o.expectRemoved(former)
		},
	} {
		for resource, create := range ownedResources {
			t.Run(resource+" "+name, func(t *testing.T) { run(create(t)) })
		}
	}
}

// A create that is refused takes nothing over.
func TestRefusedCreateOwnsNothing(t *testing.T) {
	o := ownedResources["GPU pool"](t)
	former := o.created()
	other := o
	other.config = maps.Clone(o.changed)
	if refused, diagnostics := other.create(); refused.state != nil || len(diagnostics) != 1 {
		t.Errorf("got %v (%v)", refused.state, details(diagnostics))
	}
	o.expectRemoved(former)
}

// A destroy that fails leaves the object with its owner.
func TestFailedDestroyKeepsTheOwner(t *testing.T) {
	o := ownedResources["GPU pool"](t)
	former := o.created()
	owner := o.created()
	o.stub.Fails = providertest.Failures{"Delete " + domain.GPUPoolKind.Name: errors.New("disk full")}
	if _, _, diagnostics := o.applyKnowing(owner.private, o.name, nil, owner.state, nil); len(diagnostics) != 1 {
		t.Fatalf("got %v", details(diagnostics))
	}
	o.stub.Fails = nil
	o.expectSpared(former)
	o.expectRemoved(owner)
}
