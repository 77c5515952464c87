package placement

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// TestPinned checks that placed members keep their places without any checks, and that others get what is left.
func TestPinned(t *testing.T) {
	pools := map[string]domain.GPUPoolDocument{
		"p": pooled(domain.GPUPool{}, map[string][]domain.Device{"a": gpus("a0", "a1"), "b": gpus("b0")}),
	}
	at := func(host string, gpus ...string) domain.Assignment {
		return domain.Assignment{Host: host, Port: firstFreePort, GPUs: domain.NewDeviceSet(gpus...)}
	}
	for name, c := range map[string]struct {
		roles   map[string]role
		a, b    domain.Capacity
		closed  map[string]string
		states  map[string]DeviceState
		current map[string]domain.Assignment
		want    map[string]domain.Assignment
		// refusal is a part of why not all members can be placed.
		refusal string
	}{
		"a host that has become too small keeps them, and gets no others": {
			roles: map[string]role{"w": {domain.Role{Resources: requests(2, 0)}, 3}}, a: capacity(1, 0),
			b:       capacity(4, 0),
			current: map[string]domain.Assignment{"m-w-0": at("a")},
			want:    map[string]domain.Assignment{"m-w-0": at("a"), "m-w-1": at("b"), "m-w-2": at("b")},
		},
		"a host that takes no new members": {
			roles: map[string]role{"w": {domain.Role{}, 2}}, a: capacity(1, 0), b: capacity(4, 0),
			closed:  map[string]string{"a": "host a is paused"},
			current: map[string]domain.Assignment{"m-w-0": at("a")},
			want:    map[string]domain.Assignment{"m-w-0": at("a"), "m-w-1": at("b")},
		},
		"none moves to make room": {
			roles: map[string]role{
				"w": {domain.Role{Resources: requests(3, 0)}, 2}, "x": {domain.Role{Resources: requests(2, 0)}, 1},
			},
			a: capacity(4, 0), b: capacity(4, 0),
			current: map[string]domain.Assignment{"m-w-0": at("a"), "m-x-0": at("b")},
			refusal: `role "w" has 2 members of 3 CPUs each, and only 1 of them fit; cluster "lab" has 2 hosts for this role: host a: 4 of 4 CPUs free, 0 of 0 MiB free; host b: 2 of 4 CPUs free`,
		},
		"one a host": {
			roles: map[string]role{"w": {placedOn(domain.Role{}, domain.Placement{Strategy: domain.OnePerHost}), 3}},
			a:     capacity(4, 0), b: capacity(4, 0),
			current: map[string]domain.Assignment{"m-w-0": at("a"), "m-w-1": at("b")},
			refusal: `role "w" has 3 members, at most one per host, and cluster "lab" has 2 hosts`,
		},
		"devices that are lost, or in no pool any more": {
			roles: map[string]role{"w": {onGPUs(1, 0), 3}}, a: capacity(4, 0), b: capacity(4, 0),
			states:  map[string]DeviceState{"a0": {Lost: "fallen off the bus (XID 79)"}},
			current: map[string]domain.Assignment{"m-w-0": at("a", "a0"), "m-w-2": at("b", "b7")},
			want: map[string]domain.Assignment{
				"m-w-0": at("a", "a0"), "m-w-1": at("a", "a1"), "m-w-2": at("b", "b7"),
			},
		},
		"devices that are given already": {
			roles: map[string]role{"w": {onGPUs(1, 0), 4}}, a: capacity(4, 0), b: capacity(4, 0),
			current: map[string]domain.Assignment{"m-w-0": at("a", "a0"), "m-w-1": at("b", "b0")},
			refusal: `only 3 of them`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(map[string]domain.Host{"a": host("10.0.0.1", c.a), "b": host("10.0.0.2", c.b)}, c.roles)
			in.Pinned, in.Closed, in.Pools, in.Devices, in.Current = true, c.closed, pools, c.states,
				maps.Clone(c.current)
			got, problems := Place(in)
			if c.refusal != "" {
				if err := problems.Err(); err == nil || !strings.Contains(err.Error(), c.refusal) {
					t.Errorf("placed at %v with %v, want a refusal that says %q", got, err, c.refusal)
				}
				return
			}
			if err := problems.Err(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("assignments (-want +got):\n%s", diff)
			}
		})
	}
}
