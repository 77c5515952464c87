package systemd

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/facts"
)

// TestLeaving: of hosts that are gone, what to clean is what is still their machine.
func TestLeaving(t *testing.T) {
	gone := map[string]domain.Host{"retired": {ID: "m1"}, "replaced": {ID: "m2"}}
	now := map[string]domain.Host{"store": {ID: "m0"}, "replaced": {}}
	kept := map[string]bool{"m0": true}
	for name, test := range map[string]struct {
		there map[string]string // machine IDs at the former addresses
		want  string
	}{
		"all are there":                     {map[string]string{"retired": "m1", "replaced": "m2"}, "replaced retired"},
		"nobody answers":                    {nil, "replaced retired"},
		"new machine IDs":                   {map[string]string{"retired": "m8", "replaced": "m2"}, "replaced retired"},
		"the store has a retired address":   {map[string]string{"retired": "m0", "replaced": "m2"}, "replaced"},
		"the store has a replaced address":  {map[string]string{"retired": "m1", "replaced": "m0"}, "retired"},
		"a stranger has a replaced address": {map[string]string{"retired": "m1", "replaced": "m9"}, "retired"},
		"the machines swapped their places": {map[string]string{"retired": "m2", "replaced": "m1"}, "retired"},
		"one does not answer":               {map[string]string{"retired": "m1"}, "replaced retired"},
	} {
		there := map[string]facts.Facts{}
		for host, id := range test.there {
			there[host] = facts.Facts{MachineID: id}
		}
		got := slices.Sorted(maps.Keys(leaving(gone, now, kept, there)))
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: %q are cleaned, want %q", name, got, test.want)
		}
	}
}
