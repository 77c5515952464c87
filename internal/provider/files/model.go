package files

import (
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/filesource"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// defaultTimeout limits each operation on files.
const defaultTimeout = 30 * time.Minute

// Model is trainyard_files.
type Model struct {
	ID        types.String                 `tfsdk:"id"`
	Cluster   resourcekit.ClusterReference `tfsdk:"cluster"`
	Name      types.String                 `tfsdk:"name"`
	Source    types.String                 `tfsdk:"source"`
	Excludes  []string                     `tfsdk:"excludes"`
	Path      types.String                 `tfsdk:"path"`
	Digest    types.String                 `tfsdk:"digest"`
	SizeBytes types.Int64                  `tfsdk:"size_bytes"`
	Hosts     types.Map                    `tfsdk:"hosts"`
	Timeouts  timeouts.Value               `tfsdk:"timeouts"`
}

// InCluster returns the cluster that it belongs to.
func (m Model) InCluster() resourcekit.ClusterReference { return m.Cluster }

// Limits returns the configured timeouts.
func (m Model) Limits() timeouts.Value { return m.Timeouts }

// IdentityData returns the resource's identity.
func (m Model) IdentityData() any { return resourcekit.Identity{Cluster: m.Cluster.Name, Name: m.Name} }

// Title names the resource in errors, if its name is known.
func (m Model) Title() string {
	if m.Name.IsUnknown() {
		return "files"
	}
	return fmt.Sprintf("files %q", m.Name.ValueString())
}

func (m Model) address() resourcekit.ItemAddress {
	return resourcekit.ItemAddress{Cluster: resourcekit.IDOf(m.Cluster.Key()), Name: m.Name.ValueString()}
}

// expand returns the files that a configuration specifies.
func (m Model) expand(diags *diag.Diagnostics) (spec domain.Files) {
	resourcekit.Expand(&spec, m, diags)
	return spec
}

func sourceOf(spec domain.Files) filesource.Source {
	return filesource.Source{Path: spec.Source, Excludes: spec.Excludes}
}

// flatten returns files as found, in the spelling and with the timeouts of prior.
func flatten(found reconcile.Files, prior Model) Model {
	doc := found.Document
	m := resourcekit.Flatten(doc.Spec, prior)
	m.ID = types.StringValue(domain.GroupID(doc.Spec.Cluster, doc.Spec.Name))
	m.Path, m.Digest, m.SizeBytes = types.StringValue(found.Path), types.StringValue(doc.Digest),
		types.Int64Value(doc.SizeBytes)
	m.Hosts = hostsOf(found, prior)
	return m
}

// unread returns files as planned that were copied but could not be read: what hosts have of them is left to a refresh.
func unread(plan Model, tree domain.FileTree) Model {
	plan.ID = types.StringValue(domain.GroupID(plan.Cluster.Name.ValueString(), plan.Name.ValueString()))
	plan.Digest, plan.SizeBytes = types.StringValue(tree.Digest()), types.Int64Value(tree.Size())
	plan.Hosts = resourcekit.StringMap(nil)
	if plan.Path.IsUnknown() {
		plan.Path = types.StringNull()
	}
	return plan
}

// hostsOf returns what each host has of a version: its digest, or what is wrong. A host that is
// down keeps its last value.
func hostsOf(found reconcile.Files, prior Model) types.Map {
	hosts, before := map[string]string{}, resourcekit.TextsIn(prior.Hosts)
	for host, has := range found.Hosts {
		faults, there := has.Versions[found.Document.Digest]
		had, known := before[host]
		switch {
		case has.Away && known:
			hosts[host] = had
		case has.Away, !there:
		case len(faults) == 0:
			hosts[host] = found.Document.Digest
		default:
			hosts[host] = describe(faults)
		}
	}
	return resourcekit.StringMap(hosts)
}

// describe says what is wrong with a version, such as "altered: train.py; missing: lib/data.py".
func describe(faults []engine.FileFault) string {
	var altered, missing, parts []string
	for _, file := range faults {
		if file.Missing {
			missing = append(missing, file.Path)
		} else {
			altered = append(altered, file.Path)
		}
	}
	if len(altered) > 0 {
		parts = append(parts, "altered: "+domain.Enumerate(altered))
	}
	if len(missing) > 0 {
		parts = append(parts, "missing: "+domain.Enumerate(missing))
	}
	return strings.Join(parts, "; ")
}
