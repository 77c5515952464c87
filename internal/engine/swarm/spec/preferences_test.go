package spec

import (
	"slices"
	"testing"

	"github.com/docker/docker/api/types/swarm"
	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// preferring returns the preferences for spreading over these, in order.
func preferring(descriptors ...string) []swarm.PlacementPreference {
	var preferences []swarm.PlacementPreference
	for _, descriptor := range descriptors {
		preferences = append(preferences,
			swarm.PlacementPreference{Spread: &swarm.SpreadOver{SpreadDescriptor: descriptor}})
	}
	return preferences
}

// descriptors returns what a service's tasks are spread over, in order.
func descriptors(s swarm.ServiceSpec) []string {
	var all []string
	for _, preference := range s.TaskTemplate.Placement.Preferences {
		all = append(all, preference.Spread.SpreadDescriptor)
	}
	return all
}

// TestSpread renders roles that are spread by a label. The Swarm spreads only members that share a service.
func TestSpread(t *testing.T) {
	indexed := rich()
	indexed.Placement.SpreadBy = "rack"
	for name, c := range map[string]struct {
		spec domain.MemberSpec
		want []string
	}{
		"a pool":            {spreadPool(), []string{"node.labels.rack"}},
		"by no label":       {richPool(), nil},
		"an indexed member": {indexed, nil},
	} {
		service, _ := rendered(t, c.spec)
		if got := descriptors(service.Spec); !slices.Equal(got, c.want) {
			t.Errorf("%s prefers %q, want %q", name, got, c.want)
		}
	}
}

// TestSpreadDrift changes the preferences of a service by hand: the effect on its label is detected, and corrected.
func TestSpreadDrift(t *testing.T) {
	for name, c := range map[string]struct {
		live []string
		// label is what the service is then spread by, and mended are its preferences after an apply.
		label  string
		mended []string
	}{
		"as rendered":     {[]string{"node.labels.rack"}, "rack", []string{"node.labels.rack"}},
		"in another case": {[]string{"Node.Labels.rack"}, "rack", []string{"Node.Labels.rack"}},
		"another label":   {[]string{"node.labels.Rack"}, "Rack", []string{"node.labels.rack"}},
		"taken away":      {nil, "", []string{"node.labels.rack"}},
		"within each rack": {
			[]string{"node.labels.rack", "node.labels.row"}, "rack", []string{"node.labels.rack", "node.labels.row"},
		},
		"by another label first": {
			[]string{"node.labels.row", "node.labels.rack"}, "row", []string{"node.labels.rack"},
		},
		"by no label that is known": {
			[]string{"engine.labels.disk", "node.labels."}, "",
			[]string{"node.labels.rack", "engine.labels.disk", "node.labels."},
		},
	} {
		t.Run(name, func(t *testing.T) {
			service, k := rendered(t, spreadPool())
			want := clone(t, service.Spec)
			service.Spec.TaskTemplate.Placement.Preferences = preferring(c.live...)
			if got := read(service.Spec, k).Placement.SpreadBy; got != c.label {
				t.Errorf("it is spread by %q, want %q", got, c.label)
			}
			expected := spreadPool().Normal()
			expected.Placement.SpreadBy = c.label
			switch live := Drift(service, k); {
			case (live != nil) != (c.label != "rack"):
				t.Errorf("drift: %+v", live)
			case live != nil:
				if diff := cmp.Diff(expected, Individual(*live, 3).Normal()); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
			service.Spec = Overlay(service.Spec, want)
			if got := descriptors(service.Spec); !slices.Equal(got, c.mended) {
				t.Errorf("mended, it prefers %q, want %q", got, c.mended)
			}
			if live := Drift(service, k); live != nil {
				t.Errorf("it is not mended: %+v", live)
			}
		})
	}
}

// TestSpreadChanges merges roles that are spread by another label, or by none, into services to which others have added
// preferences.
func TestSpreadChanges(t *testing.T) {
	for name, c := range map[string]struct {
		before string
		live   []string
		after  string
		want   []string
	}{
		"from none": {"", nil, "zone", []string{"node.labels.zone"}},
		"from none, beside others": {
			"", []string{"node.labels.row"}, "zone", []string{"node.labels.zone", "node.labels.row"},
		},
		"from none to that of others": {
			"", []string{"node.labels.row", "node.labels.zone"}, "zone",
			[]string{"node.labels.zone", "node.labels.row"},
		},
		"never": {"", []string{"node.labels.row"}, "", []string{"node.labels.row"}},
		"to another": {
			"rack", []string{"node.labels.rack", "node.labels.row"}, "zone",
			[]string{"node.labels.zone", "node.labels.row"},
		},
		"to that of others": {
			"rack", []string{"node.labels.rack", "node.labels.zone"}, "zone", []string{"node.labels.zone"},
		},
		"to none": {"rack", []string{"node.labels.rack"}, "", nil},
		"to none, beside others": {
			"rack", []string{"node.labels.rack", "node.labels.row"}, "", []string{"node.labels.row"},
		},
		"to none, after a change by hand": {"rack", []string{"node.labels.row"}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := richPool(), richPool()
			before.Placement.SpreadBy, after.Placement.SpreadBy = c.before, c.after
			service, k := rendered(t, before)
			service.Spec.TaskTemplate.Placement.Preferences = preferring(c.live...)
			wanted, _ := rendered(t, after)
			service.Spec = Overlay(service.Spec, wanted.Spec)
			if got := descriptors(service.Spec); !slices.Equal(got, c.want) {
				t.Errorf("it prefers %q, want %q", got, c.want)
			}
			if live := Drift(service, k); live != nil {
				t.Errorf("it reads as changed: %+v", live)
			}
		})
	}
}
