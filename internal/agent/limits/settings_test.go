//go:build linux

package limits

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSettings(t *testing.T) {
	for name, test := range map[string]struct {
		unified   bool
		cpus      float64
		memoryMiB int64
		want      []string
	}{
		"version 2": {unified: true, cpus: 1.5, memoryMiB: 64, want: []string{
			"cpu.max=150000 100000", "memory.swap.max=0", "memory.max=67108864",
		}},
		"version 2 without limits": {unified: true, want: []string{
			"cpu.max=max 100000", "memory.swap.max=max", "memory.max=max",
		}},
		"version 1": {cpus: 0.29, memoryMiB: 64, want: []string{
			"cpu.cfs_period_us=100000", "cpu.cfs_quota_us=29000",
			"memory.memsw.limit_in_bytes=-1", "memory.limit_in_bytes=67108864", "memory.memsw.limit_in_bytes=67108864",
		}},
		"version 1 without limits": {want: []string{
			"cpu.cfs_period_us=100000", "cpu.cfs_quota_us=-1",
			"memory.memsw.limit_in_bytes=-1", "memory.limit_in_bytes=-1", "memory.memsw.limit_in_bytes=-1",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, s := range settings(test.unified, test.cpus, test.memoryMiB) {
				got = append(got, s.file+"="+s.value)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
		})
	}
}
