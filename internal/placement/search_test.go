package placement

import (
	"fmt"
	"slices"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// TestSearchEnds checks that a large group that fits by the numbers, but can't be placed, is refused all the same.
func TestSearchEnds(t *testing.T) {
	got, ps := Place(splitGPUs())
	if got != nil {
		t.Errorf("assignments %v beside problems", got)
	}
	checkProblems(t, ps, []wanted{{`roles["three"].gpus`, []string{"100 members of 3 GPUs", "only 50 of them fit"}}})
}

// splitGPUs returns a group whose larger members leave too few devices together on a host, though enough in total.
func splitGPUs() Input {
	in := manyGPUs()
	pools := in.Pools
	in = input(in.Hosts, map[string]role{"four": {onGPUs(4, 0), 75}, "three": {onGPUs(3, 0), 100}})
	in.Pools = pools
	return in
}

// manyGPUs returns a large group that takes all exclusive devices of hosts with eight each, all linked, four on each
// NUMA node, and shares the others.
func manyGPUs() Input {
	hosts, devices := map[string]domain.Host{}, map[string][]domain.Device{}
	shared := map[string][]domain.Device{}
	for i := range 100 {
		name := fmt.Sprintf("host-%02d", i)
		hosts[name] = host(name, capacity(64, 65536))
		var uuids []string
		for n := range 8 {
			uuids = append(uuids, fmt.Sprintf("GPU-%04x%04x-0000", i, n))
		}
		all := linked(slices.Concat(onNode(0, gpus(uuids[:4]...)...), onNode(1, gpus(uuids[4:]...)...))...)
		devices[name], shared[name] = all[:6], all[6:]
	}
	in := input(hosts, map[string]role{
		"chief":  {onGPUs(4, 0), 50},
		"worker": {onGPUs(1, 0), 400},
		"actor":  {domain.Role{GPUs: &domain.GPURequest{Pool: "shared"}}, 550},
	})
	in.Pools = map[string]domain.GPUPoolDocument{
		"p": pooled(domain.GPUPool{}, devices), "shared": pooled(slotted(4000), shared),
	}
	return in
}
