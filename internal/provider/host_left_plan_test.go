package provider

import (
	"maps"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/providertest"
)

// TestPlanAfterHostLeft: a host that leaves the cluster is no change of files or images, and is not among the planned
// hosts of those that change otherwise, as the apply does not find it any more.
func TestPlanAfterHostLeft(t *testing.T) {
	file, _ := archiveFile(t, "")
	for name, applied := range map[string]func() (
		tf terraform, stub *providertest.Stub, config, state map[string]tftypes.Value,
	){
		theFiles: func() (terraform, *providertest.Stub, map[string]tftypes.Value, map[string]tftypes.Value) {
			l := newFilesLab(t, "gpu1", "gpu2")
			config := l.files("process", nil)
			return l.terraform, l.engine.Stub, config, l.applied(config, nil)
		},
		theImage: func() (terraform, *providertest.Stub, map[string]tftypes.Value, map[string]tftypes.Value) {
			l := newImageLab(t, "gpu1", "gpu2")
			config := l.archive(file)
			return l.terraform, l.engine.Stub, config, l.applied(config, nil)
		},
	} {
		for what, change := range map[string]func(config map[string]tftypes.Value){
			"nothing else": nil,
			"the endpoint": func(config map[string]tftypes.Value) {
				var reference map[string]tftypes.Value
				if err := config["cluster"].As(&reference); err != nil {
					t.Fatal(err)
				}
				reference = maps.Clone(reference)
				reference["endpoint"] = providertest.Text("ssh://gpu1")
				config["cluster"] = tftypes.NewValue(config["cluster"].Type(), reference)
			},
			"the spelling of the source": func(config map[string]tftypes.Value) {
				if source, found := config["source"]; found {
					config["source"] = providertest.Text(textOf(t, source) + "/.")
				} else {
					config["archive"] = tftypes.NewValue(tftypes.String, nil)
				}
			},
		} {
			tf, stub, config, state := applied()
			left := providertest.LabOf("gpu1")
			left.Spec.Engine = providertest.Documents[domain.ClusterDocument](stub)[""].Spec.Engine
			providertest.Set(stub, left)
			if change == nil {
				planned, diagnostics := tf.plan(name, config, state)
				fatalOn(t, nil, diagnostics)
				if !planned["hosts"].Equal(state["hosts"]) {
					t.Errorf("%s, %s: planned hosts %s", name, what, planned["hosts"])
				}
				continue
			}
			config = maps.Clone(config)
			change(config)
			planned, diagnostics := tf.plan(name, config, state)
			fatalOn(t, nil, diagnostics)
			if hosts := providertest.TextsOf(t, planned["hosts"]); len(hosts) != 1 || hosts["gpu1"] == "" {
				t.Errorf("%s, %s: planned hosts %v", name, what, hosts)
			}
			state, diagnostics = tf.apply(name, config, state, planned)
			fatalOn(t, nil, diagnostics)
			if !state["hosts"].Equal(planned["hosts"]) {
				t.Errorf("%s, %s: hosts are %s, and were planned as %s", name, what, state["hosts"], planned["hosts"])
			}
		}
	}
}
