package group

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

// keepPlan puts what a plan showed of members in place of what was found after its apply, with a warning: if a host was
// lost meanwhile, members have moved, and Terraform takes any other value for a bug of the provider. The next refresh
// shows what is.
func (m *Model) keepPlan(plan Model, diags *diag.Diagnostics) {
	var differences []string
	for _, computed := range []struct {
		name    string
		planned types.Map
		found   *types.Map
	}{
		{"placements", plan.Placements, &m.Placements},
		{"members", plan.Members, &m.Members},
		{"cluster_spec", plan.ClusterSpec, &m.ClusterSpec},
	} {
		kept, differ := withPlanned(*computed.found, computed.planned)
		if len(differ) > 0 {
			found, planned := resourcekit.TextsIn(*computed.found), resourcekit.TextsIn(computed.planned)
			for i, key := range differ {
				differ[i] = fmt.Sprintf("%s[%q] is %.200q, not %.200q", computed.name, key, found[key], planned[key])
			}
			differences = append(differences, domain.Enumerate(differ))
		}
		*computed.found = kept
	}
	if len(differences) > 0 {
		diags.AddWarning("Group changed during its apply", fmt.Sprintf(
			"Group %q was applied, but is no longer as planned: %s. Members move if their host is lost, and an "+
				"existing group that is adopted keeps its places. Terraform accepts nothing but the plan, so that is in "+
				"the state; the next plan or refresh shows what is.",
			m.Name.ValueString(), strings.Join(differences, "; ")))
	}
}

// withPlanned returns a map as found, but with the elements that were known when it was planned, and the keys of those
// that differ.
func withPlanned(found, planned types.Map) (kept types.Map, differ []string) {
	if planned.IsUnknown() || planned.Equal(found) {
		return found, nil
	}
	elements, actual := planned.Elements(), found.Elements()
	for key, want := range elements {
		got, there := actual[key]
		if !there {
			got = types.StringNull()
		}
		switch {
		case want.IsUnknown():
			elements[key] = got
		case !want.Equal(got):
			differ = append(differ, key)
		}
	}
	for key := range actual {
		if _, there := elements[key]; !there {
			differ = append(differ, key)
		}
	}
	slices.Sort(differ)
	return types.MapValueMust(types.StringType, elements), differ
}
