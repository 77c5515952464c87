package provider

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/backtest"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/group"
	"github.com/trainyard/terraform-provider-trainyard/internal/topology"
)

// fatalOn ends the test at the first diagnostic of a response.
func fatalOn(t *testing.T, err error, diagnostics []*tfprotov6.Diagnostic) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range diagnostics {
		t.Fatalf("%s: %s: %s (at %v)", d.Severity, d.Summary, d.Detail, d.Attribute)
	}
}

// The framework validates the implementation of each schema when all are requested.
func TestSchemasAreValidAndDescribed(t *testing.T) {
	server := NewServer("test", engine.Registry{"process": {}})
	schemas, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	fatalOn(t, err, schemas.Diagnostics)
	identities, err := server.GetResourceIdentitySchemas(t.Context(), &tfprotov6.GetResourceIdentitySchemasRequest{})
	fatalOn(t, err, identities.Diagnostics)

	for _, name := range []string{
		"trainyard_autoscaling_policy", "trainyard_cluster", "trainyard_files", "trainyard_gpu_pool", "trainyard_group",
		"trainyard_image", "trainyard_sweep",
	} {
		if schemas.ResourceSchemas[name] == nil || identities.IdentitySchemas[name] == nil {
			t.Errorf("resource %s has no schema or no identity", name)
		}
	}
	for _, name := range []string{
		"trainyard_cluster", "trainyard_gpus", "trainyard_group", "trainyard_logs", "trainyard_policy_backtest",
		"trainyard_scaling_history", "trainyard_sweep", "trainyard_utilisation",
	} {
		if schemas.DataSourceSchemas[name] == nil {
			t.Errorf("there is no data source %s", name)
		}
	}
	if schemas.EphemeralResourceSchemas["trainyard_join_token"] == nil {
		t.Error("there is no ephemeral resource trainyard_join_token")
	}
	for _, name := range []string{"tf_config", "ps_bandwidth_gbps"} {
		if schemas.Functions[name] == nil {
			t.Errorf("there is no function %s", name)
		}
	}
	checkDescribed(t, "provider", schemas.Provider.Block.Description, schemas.Provider.Block.Attributes)
	for name, s := range schemas.ResourceSchemas {
		checkDescribed(t, name, s.Block.Description, s.Block.Attributes)
	}
	for name, s := range schemas.DataSourceSchemas {
		checkDescribed(t, "data."+name, s.Block.Description, s.Block.Attributes)
	}
	for name, s := range schemas.EphemeralResourceSchemas {
		checkDescribed(t, "ephemeral."+name, s.Block.Description, s.Block.Attributes)
	}
}

// Every secret is marked as sensitive. It is in no state, except the URL of a sweep's hook, which a plan compares.
func TestSecretsAreMarked(t *testing.T) {
	server := NewServer("test", engine.Registry{"process": {}})
	schemas, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	fatalOn(t, err, schemas.Diagnostics)
	attributes := map[string]*tfprotov6.SchemaAttribute{}
	collect(attributes, "provider", schemas.Provider.Block.Attributes)
	collect(attributes, "group", schemas.ResourceSchemas["trainyard_group"].Block.Attributes)
	collect(attributes, "sweep", schemas.ResourceSchemas["trainyard_sweep"].Block.Attributes)
	collect(attributes, "join_token", schemas.EphemeralResourceSchemas["trainyard_join_token"].Block.Attributes)
	for name, writeOnly := range map[string]bool{
		"provider.ssh.private_key": false, "provider.ssh.passphrase": false, "provider.docker.tls.key": false,
		"provider.docker.registries.password": false, "provider.docker.registries.token": false,
		"join_token.token": false, "sweep.on_finish.url": false,
		"provider.prometheus.password": false, "provider.prometheus.bearer_token": false,
		"group.container.secrets.value": true, "group.roles.container.secrets.value": true,
	} {
		switch a := attributes[name]; {
		case a == nil:
			t.Errorf("there is no %s", name)
		case !a.Sensitive || a.WriteOnly != writeOnly:
			t.Errorf("%s: sensitive %t, write-only %t", name, a.Sensitive, a.WriteOnly)
		}
	}
}

// collect adds attributes by name, with nested ones under both names.
func collect(all map[string]*tfprotov6.SchemaAttribute, at string, attributes []*tfprotov6.SchemaAttribute) {
	for _, a := range attributes {
		name := at + "." + a.Name
		all[name] = a
		if a.NestedType != nil {
			collect(all, name, a.NestedType.Attributes)
		}
	}
}

func checkDescribed(t *testing.T, at, description string, attributes []*tfprotov6.SchemaAttribute) {
	t.Helper()
	if description == "" {
		t.Errorf("%s has no description", at)
	}
	for _, a := range attributes {
		var nested []*tfprotov6.SchemaAttribute
		if a.NestedType != nil {
			nested = a.NestedType.Attributes
		}
		checkDescribed(t, at+"."+a.Name, a.Description, nested)
	}
}

// An attribute's description says what one needs while writing the attribute; background has room on the page.
func TestAttributeDescriptionsAreShort(t *testing.T) {
	const limit = 400 // Two or three sentences.
	server := NewServer("test", engine.Registry{"process": {}})
	schemas, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	fatalOn(t, err, schemas.Diagnostics)

	attributes := map[string]*tfprotov6.SchemaAttribute{}
	collect(attributes, "provider", schemas.Provider.Block.Attributes)
	for name, s := range schemas.ResourceSchemas {
		collect(attributes, name, s.Block.Attributes)
	}
	for name, s := range schemas.DataSourceSchemas {
		collect(attributes, "data."+name, s.Block.Attributes)
	}
	for name, s := range schemas.EphemeralResourceSchemas {
		collect(attributes, "ephemeral."+name, s.Block.Attributes)
	}
	descriptions := map[string]string{}
	for name, a := range attributes {
		descriptions[name] = a.Description
	}
	for name, f := range schemas.Functions {
		for _, p := range f.Parameters {
			descriptions["function."+name+"."+p.Name] = p.Description
		}
	}
	for _, name := range slices.Sorted(maps.Keys(descriptions)) {
		if length := utf8.RuneCountInString(descriptions[name]); length > limit {
			t.Errorf("%s: the description has %d characters, at most %d are allowed: keep meaning, allowed values, "+
				"default and effect; move the rest to resource.md or data_source.md beside the schema, or to a guide",
				name, length, limit)
		}
	}
}

func TestDescriptionsNameAllFrameworks(t *testing.T) {
	attribute := group.Schema(t.Context(), nil).Attributes["framework"].GetMarkdownDescription()
	for _, name := range topology.Names() {
		if !strings.Contains(group.Description, "| `"+name+"` |") {
			t.Errorf("the resource's description has no row for the framework %q", name)
		}
		if !strings.Contains(attribute, "`"+name+"`") {
			t.Errorf("the attribute's description does not name the framework %q", name)
		}
	}
}

func TestDescriptionNamesAllSignals(t *testing.T) {
	for _, signal := range autoscale.Signals {
		if !strings.Contains(backtest.Schema().MarkdownDescription, "| `"+string(signal)+"` |") {
			t.Errorf("the description of trainyard_policy_backtest has no row for the signal %q", signal)
		}
	}
}
