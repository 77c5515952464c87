package reconcile_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// A selection waits until all hosts that it concerns have reported their GPUs, or until their time is up.
func TestSelectionWaitsForHosts(t *testing.T) {
	spec := domain.GPUPool{Cluster: "lab", Name: "p", Select: &domain.DeviceSelector{}}
	both := map[string][]string{"a": {"GPU-a0"}, "b": {"GPU-b0"}}
	starting := dgx()
	starting["b"] = domain.HostGPUs{Unknown: "they are being read for the first time"}
	for name, test := range map[string]struct {
		selector domain.DeviceSelector
		stored   map[string][]domain.Device
		gpus     []map[string]domain.HostGPUs
		shown    map[string][]string
		want     map[string][]string
		waits    bool
		warned   string
	}{
		"until they report": {
			selector: domain.DeviceSelector{MaxPerHost: 1},
			gpus:     []map[string]domain.HostGPUs{starting, starting, dgx()}, want: both, waits: true,
		},
		"until they report, as planned": {
			selector: domain.DeviceSelector{MaxPerHost: 1}, gpus: []map[string]domain.HostGPUs{starting, dgx()},
			shown: both, want: both, waits: true,
		},
		"and no longer than that": {
			selector: domain.DeviceSelector{MaxPerHost: 1}, gpus: []map[string]domain.HostGPUs{starting},
			want: map[string][]string{"a": {"GPU-a0"}}, waits: true,
			warned: "select: GPUs unknown: the GPUs of some hosts are unknown, so they are not in the pool: host b: they are being read for the first time. An apply waits 30s",
		},
		"a host of which it has some": {
			selector: domain.DeviceSelector{
				Model: "*A40",
			}, stored: map[string][]domain.Device{"b": {{UUID: "GPU-b1", Model: "NVIDIA A40"}}},
			gpus: []map[string]domain.HostGPUs{starting, dgx()}, want: map[string][]string{"b": {"GPU-b1", "GPU-b0"}},
			waits: true,
		},
		"not for one of which it has all that it may": {
			selector: domain.DeviceSelector{Model: "*A40", MaxPerHost: 1},
			stored:   map[string][]domain.Device{"b": {{UUID: "GPU-b1", Model: "NVIDIA A40"}}},
			gpus:     []map[string]domain.HostGPUs{starting}, want: map[string][]string{"b": {"GPU-b1"}},
		},
		"not for one with another name": {
			selector: domain.DeviceSelector{Hosts: []string{"a"}, MaxPerHost: 1},
			gpus:     []map[string]domain.HostGPUs{starting}, want: map[string][]string{"a": {"GPU-a0"}},
		},
		"not for one with another label": {
			selector: domain.DeviceSelector{Labels: map[string]string{"gpu": "v100"}, MaxPerHost: 1},
			gpus:     []map[string]domain.HostGPUs{starting}, want: map[string][]string{"a": {"GPU-a0"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				hosts := f.hosts()
				a := hosts["a"]
				a.Labels = map[string]string{"gpu": "v100"}
				hosts["a"] = a
				f.setHosts(hosts)
				f.gpus = test.gpus
				if test.stored != nil {
					set(f, domain.GPUPoolDocument{Spec: spec, Devices: test.stored})
				}
				changed, start := spec, time.Now()
				changed.Select = &test.selector
				warnings, err := reconcile.Reconciler{Engine: f}.PutPool(t.Context(), changed, false, test.shown)
				must(t, err)
				if got := warnings.Error(); (got != "") != (test.warned != "") || !strings.Contains(got, test.warned) {
					t.Errorf("warned of %q, want %q", got, test.warned)
				}
				if took := time.Since(start); (took > 0) != test.waits || took > time.Minute {
					t.Errorf("it took %s", took)
				}
				if diff := cmp.Diff(test.want, documents[domain.GPUPoolDocument](f)["p"].UUIDs()); diff != "" {
					t.Errorf("devices (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// If the apply times out before the hosts' time is up, no pool is stored, and the error names the hosts it waited for.
func TestSelectionOutOfTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		starting := dgx()
		starting["b"] = domain.HostGPUs{Unknown: "no agent"}
		f.gpus = []map[string]domain.HostGPUs{starting}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := reconcile.Reconciler{
			Engine: f,
		}.PutPool(ctx, domain.GPUPool{Cluster: "lab", Name: "p", Select: &domain.DeviceSelector{}}, true, nil)
		if err == nil || !strings.Contains(err.Error(), "host b: no agent") || errors.As(err, new(domain.Problems)) ||
			len(documents[domain.GPUPoolDocument](f)) > 0 {
			t.Errorf("pools %v, and the error %v", documents[domain.GPUPoolDocument](f), err)
		}
	})
}
