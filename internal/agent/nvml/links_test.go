package nvml

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

func TestPeers(t *testing.T) {
	// Bus IDs that begin with s are those of switches.
	device := func(uuid, busID string, leadsTo ...string) identity {
		d := identity{Device: domain.Device{UUID: uuid}, pciBusID: busID}
		for _, id := range leadsTo {
			d.remotes = append(d.remotes, remote{busID: id, isSwitch: id[0] == 's'})
		}
		return d
	}
	for name, test := range map[string]struct {
		devices []identity
		want    map[string][]string
	}{
		"none": {want: map[string][]string{}},
		"no links": {
			devices: []identity{device("a", "1"), device("b", "2")},
			want:    map[string][]string{"a": nil, "b": nil},
		},
		"several links to one, in any order": {
			devices: []identity{device("a", "1", "3", "2", "2"), device("b", "2", "1", "1"), device("c", "3", "1")},
			want:    map[string][]string{"a": {"b", "c"}, "b": {"a"}, "c": {"a"}},
		},
		"one that reports no links": {
			devices: []identity{device("a", "1", "2"), device("b", "2")},
			want:    map[string][]string{"a": {"b"}, "b": nil},
		},
		"by switches": {
			devices: []identity{
				device("a", "1", "s1", "s2"), device("b", "2", "s1", "s2"), device("c", "3", "s2"),
				device("d", "4", "s3"),
			},
			want: map[string][]string{"a": {"b", "c"}, "b": {"a", "c"}, "c": {"a", "b"}, "d": nil},
		},
		"one that was never identified is no switch": {
			devices: []identity{device("a", "1", "9"), device("b", "2", "9"), {}},
			want:    map[string][]string{"a": nil, "b": nil, "": nil},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, peers(test.devices)); diff != "" {
				t.Errorf("peers (-want +got):\n%s", diff)
			}
		})
	}
}
