package sweep

import (
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/placement"
)

func TestFits(t *testing.T) {
	pools := slots(1199, map[string][]domain.Device{"gpu1": a40("GPU-a")})
	cluster := Cluster{
		Hosts: hostsOf(4, "gpu1", "h"), Pools: pools, Closed: map[string]string{"gpu1": "down", "h": "down"},
		Devices:  map[string]placement.DeviceState{"GPU-a": {Lost: "gone"}},
		Reserved: map[string]domain.Resources{"gpu1": {CPUs: 4}, "h": {CPUs: 4}}, Room: 1,
	}
	measured := domain.Admission{FreeGPUMemory: true}
	for name, test := range map[string]struct {
		change func(s *domain.Sweep)
		path   string
		says   []string
	}{
		"it does":     {func(*domain.Sweep) {}, "", nil},
		"on the card": {func(s *domain.Sweep) { *s = onGPUs(*s, 37*1199) }, "", nil},
		"with what has to be free": {
			func(s *domain.Sweep) { *s = onGPUs(*s, 44_000); s.Admission = measured }, "", nil,
		},
		"with another reserve": {func(s *domain.Sweep) {
			*s = onGPUs(*s, 44_000)
			s.Admission = measured
			s.Admission.ReservePercent = new(4.0)
		}, "", nil},
		"too many processors": {
			func(s *domain.Sweep) { s.Resources.CPUs = 4.5 }, "resources.cpus", []string{"4.5 CPUs", "4 CPUs"},
		},
		"too much memory": {
			func(s *domain.Sweep) { s.Resources.MemoryMiB = 64_001 }, "resources.memory_mib",
			[]string{"64001 MiB", "64000 MiB"},
		},
		"no such label": {
			func(s *domain.Sweep) { s.Placement.Labels = map[string]string{"gpu": "h100"} }, "placement.labels",
			[]string{`gpu = "h100"`},
		},
		"spread by a label": {func(s *domain.Sweep) { s.Placement.SpreadBy = "name" }, "", nil},
		"by no such label": {
			func(s *domain.Sweep) { s.Placement.SpreadBy = "rack" }, "placement.spread_by",
			[]string{`label "rack"`, "are: name"},
		},
		"no such host": {
			func(s *domain.Sweep) { s.Placement.Hosts = []string{"h", "x"} }, "placement.hosts[1]",
			[]string{`no host "x"`},
		},
		"no such pool": {
			func(s *domain.Sweep) { s.GPUs = &domain.GPURequest{Pool: "q"} }, "gpus.pool",
			[]string{`no GPU pool "q"`, "p"},
		},
		"no card on the hosts": {
			func(s *domain.Sweep) { *s = onGPUs(*s, 1); s.Placement.Hosts = []string{"h"} }, "gpus.count",
			[]string{"hosts that it may use have 0", "gpu1"},
		},
		"too large for a card": {
			func(s *domain.Sweep) { *s = onGPUs(*s, 37*1199+1) }, "gpus.memory_mib", []string{"38 slots", "37 slots"},
		},
		"more cards than there are": {
			func(s *domain.Sweep) { *s = onGPUs(*s, 1); s.GPUs.Count = new(2) }, "gpus.count",
			[]string{"2 GPUs", "gpu1 has 1"},
		},
		"never as much free": {func(s *domain.Sweep) {
			*s = onGPUs(*s, 44_000)
			s.Admission = measured
			s.Admission.ReservePercent = new(5.0)
		},
			"gpus", []string{"46068 MiB", "46304"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := sweepOf("lr", 3)
			test.change(&s)
			problems := Fits(s, cluster)
			if test.path == "" {
				if len(problems) > 0 {
					t.Error(problems)
				}
				return
			}
			if len(problems) != 1 || problems[0].Path.String() != test.path {
				t.Fatalf("got %v, want a problem at %s", problems, test.path)
			}
			says(t, "detail", problems[0].Detail, test.says...)
		})
	}
	if problems := Fits(sweepOf("lr", 1), Cluster{}); len(problems) != 1 || problems[0].Path.String() != "cluster" {
		t.Errorf("without hosts: %v", problems)
	}
}
