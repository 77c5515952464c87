package reconcile_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

const (
	offTheBus = "fallen off the bus (XID 79)"
	noDriver  = "no driver"
)

// unreadFor is the report of an agent that has failed to read its GPUs for this long.
func unreadFor(d time.Duration) domain.HostGPUs {
	return domain.HostGPUs{Unknown: noDriver, UnknownSince: epoch, SampledAt: epoch.Add(d)}
}

// gone removes a device from what was found.
func gone(found map[string]domain.HostGPUs, host string, n int) {
	there := found[host]
	there.GPUs = append(there.GPUs[:n:n], there.GPUs[n+1:]...)
	found[host] = there
}

// TestExamine examines a pool of the devices a0 and a1 of host a, and b0 of host b.
func TestExamine(t *testing.T) {
	for name, test := range map[string]struct {
		before map[string]string
		change func(found map[string]domain.HostGPUs)
		want   map[string]string
	}{
		"nothing": {change: func(map[string]domain.HostGPUs) {}},
		"of another device": {
			change: func(found map[string]domain.HostGPUs) { found["a"].GPUs[7].Trouble = offTheBus },
		},
		"the device says so": {
			change: func(found map[string]domain.HostGPUs) { found["a"].GPUs[1].Trouble = offTheBus },
			want:   map[string]string{"GPU-a1": offTheBus},
		},
		"another trouble than it had": {
			before: map[string]string{"GPU-a1": "no longer found"},
			change: func(found map[string]domain.HostGPUs) { found["a"].GPUs[1].Trouble = offTheBus },
			want:   map[string]string{"GPU-a1": offTheBus},
		},
		"a device that is gone": {
			change: func(found map[string]domain.HostGPUs) { gone(found, "a", 0) },
			want:   map[string]string{"GPU-a0": "no longer found"},
		},
		"a device that is in another host by now": {
			change: func(found map[string]domain.HostGPUs) { found["b"], found["a"] = found["a"], found["b"] },
			want: map[string]string{
				"GPU-a0": "no longer found", "GPU-a1": "no longer found", "GPU-b0": "no longer found",
			},
		},
		"a host that is no part of the cluster": {
			change: func(found map[string]domain.HostGPUs) { delete(found, "b") },
			want:   map[string]string{"GPU-b0": "no longer found"},
		},
		"a device that is divided": {
			change: func(found map[string]domain.HostGPUs) { found["b"].GPUs[0].MIG = new(true) },
			want: map[string]string{
				"GPU-b0": "it is partitioned by MIG, and pools take whole GPUs; disable MIG (nvidia-smi -mig 0), or leave it out",
			},
		},
		"a device that works again": {
			before: map[string]string{"GPU-a1": offTheBus, "GPU-b0": offTheBus},
			change: func(map[string]domain.HostGPUs) {},
		},
		"a host that reports none": {
			before: map[string]string{"GPU-a0": offTheBus},
			change: func(found map[string]domain.HostGPUs) { found["a"] = domain.HostGPUs{Unknown: "no agent"} },
			want:   map[string]string{"GPU-a0": offTheBus},
		},
		"a host whose agent can't read its GPUs for a moment": {
			before: map[string]string{"GPU-a0": offTheBus},
			change: func(found map[string]domain.HostGPUs) { found["a"] = unreadFor(29 * time.Second) },
			want:   map[string]string{"GPU-a0": offTheBus},
		},
		"a host whose agent can't read its GPUs": {
			before: map[string]string{"GPU-a0": offTheBus},
			change: func(found map[string]domain.HostGPUs) { found["a"] = unreadFor(30 * time.Second) },
			want:   map[string]string{"GPU-a0": noDriver, "GPU-a1": noDriver},
		},
		"a host whose agent can read its GPUs again": {
			before: map[string]string{"GPU-a0": noDriver, "GPU-a1": noDriver},
			change: func(map[string]domain.HostGPUs) {},
		},
		"a host whose agent can read some of its GPUs": {
			change: func(found map[string]domain.HostGPUs) {
				some := unreadFor(time.Hour)
				some.GPUs = found["a"].GPUs[:1]
				found["a"] = some
			},
			want: map[string]string{"GPU-a1": noDriver},
		},
		"a host that reports some": {
			before: map[string]string{"GPU-a0": offTheBus, "GPU-a1": offTheBus},
			change: func(found map[string]domain.HostGPUs) {
				found["a"] = domain.HostGPUs{GPUs: found["a"].GPUs[:1], Unknown: "GPU 1: fallen off the bus"}
			},
			want: map[string]string{"GPU-a1": offTheBus},
		},
	} {
		t.Run(name, func(t *testing.T) {
			found := dgx()
			test.change(found)
			pool := domain.GPUPoolDocument{
				Devices: map[string][]domain.Device{"a": {{UUID: "GPU-a0"}, {UUID: "GPU-a1"}}, "b": {{UUID: "GPU-b0"}}},
				Trouble: test.before,
			}
			want := test.want
			if want == nil {
				want = map[string]string{}
			}
			if diff := cmp.Diff(want, reconcile.Examine(pool, found).Trouble); diff != "" {
				t.Errorf("trouble (-want +got):\n%s", diff)
			}
		})
	}
}

// TestExamineCondemned: the only device of a pool needs a reset, and is examined several times.
func TestExamineCondemned(t *testing.T) {
	const (
		boot, another = "2c7d8e5b", "9f0e2c7d"
		ecc, reset    = "double-bit ECC error (XID 48)", "it needs a reset (nvidia-smi --gpu-reset)"
	)
	// look returns a host's report in which the agent says this of the device.
	look := func(boot string, says domain.GPU) domain.HostGPUs {
		here := dgx()["a"]
		here.Boot = boot
		gpu := &here.GPUs[1]
		gpu.Trouble, gpu.Condemned, gpu.RecoveryNeeded, gpu.GoneAt = says.Trouble, says.Condemned, says.RecoveryNeeded,
			says.GoneAt
		return here
	}
	condemned := look(boot, domain.GPU{Trouble: ecc, Condemned: &domain.Condemnation{XID: 48, At: epoch}})
	asked := look(boot, domain.GPU{
		Trouble: ecc + "; " + reset, RecoveryNeeded: new(true),
		Condemned: &domain.Condemnation{XID: 48, At: epoch, Asked: true},
	})
	forgot := look(boot, domain.GPU{})
	absent := forgot
	absent.GPUs = nil
	for name, test := range map[string]struct {
		looks []domain.HostGPUs
		want  string
	}{
		"once the agent has reported":             {[]domain.HostGPUs{condemned}, ecc},
		"after the agent was restarted":           {[]domain.HostGPUs{condemned, forgot, forgot}, ecc},
		"of a host that does not report its boot": {[]domain.HostGPUs{condemned, look("", domain.GPU{})}, ecc},
		"while the agent is away":                 {[]domain.HostGPUs{condemned, {Unknown: "no agent"}}, ecc},
		"after the agent was away": {
			[]domain.HostGPUs{condemned, {Unknown: "no agent"}, forgot}, ecc,
		},
		"while the driver can't be used": {[]domain.HostGPUs{condemned, unreadFor(time.Minute)}, noDriver},
		"after the driver could not be used": {
			[]domain.HostGPUs{condemned, unreadFor(time.Minute), forgot}, ecc,
		},
		"in another trouble": {
			[]domain.HostGPUs{condemned, look(boot, domain.GPU{Trouble: "the driver does not answer"})},
			ecc + "; the driver does not answer",
		},
		"gone":           {[]domain.HostGPUs{condemned, absent}, "no longer found"},
		"gone, and back": {[]domain.HostGPUs{condemned, absent, forgot}, ""},
		"lost": {
			[]domain.HostGPUs{condemned, look(boot, domain.GPU{Trouble: offTheBus, GoneAt: epoch.Add(time.Second)})},
			offTheBus,
		},
		"lost, and back with another agent": {[]domain.HostGPUs{
			condemned, look(boot, domain.GPU{Trouble: offTheBus, GoneAt: epoch.Add(time.Second)}), forgot,
		}, ""},
		"lost, and back before anybody looked": {
			[]domain.HostGPUs{condemned, look(boot, domain.GPU{GoneAt: epoch.Add(time.Second)}), forgot}, "",
		},
		"lost before": {
			[]domain.HostGPUs{condemned, look(boot, domain.GPU{GoneAt: epoch.Add(-time.Second)})}, ecc,
		},
		"after the host was restarted": {
			[]domain.HostGPUs{condemned, forgot, look(another, domain.GPU{})}, "",
		},
		"with a driver that asks for a reset": {
			[]domain.HostGPUs{asked, look(boot, domain.GPU{Trouble: reset, RecoveryNeeded: new(true)})},
			ecc + "; " + reset,
		},
		"with a driver that no longer asks for one": {
			[]domain.HostGPUs{asked, look(boot, domain.GPU{RecoveryNeeded: new(false)})}, "",
		},
		"with a driver that was heard by another one": {[]domain.HostGPUs{
			condemned, look(boot, domain.GPU{Trouble: reset, RecoveryNeeded: new(true)}),
			look(boot, domain.GPU{RecoveryNeeded: new(false)}),
		}, ""},
		"with a driver that never asked for one": {
			[]domain.HostGPUs{condemned, look(boot, domain.GPU{RecoveryNeeded: new(false)})}, ecc,
		},
	} {
		t.Run(name, func(t *testing.T) {
			pool := domain.GPUPoolDocument{Devices: map[string][]domain.Device{"a": {{UUID: "GPU-a1"}}}}
			for _, found := range test.looks {
				pool = reconcile.Examine(pool, map[string]domain.HostGPUs{"a": found})
			}
			if got := pool.Trouble["GPU-a1"]; got != test.want {
				t.Errorf("trouble %q, want %q", got, test.want)
			}
		})
	}
}

// poolOf returns an engine with the pool "p" of these devices of host a, and its reconciler.
func poolOf(t *testing.T, uuids ...string) (*fake, reconcile.Reconciler) {
	t.Helper()
	f := newFake()
	f.gpus = []map[string]domain.HostGPUs{dgx()}
	r := reconcile.Reconciler{Engine: f}
	putPool(t, r, domain.GPUPool{Cluster: "lab", Name: "p", Devices: map[string][]string{"a": uuids}}, true)
	return f, r
}

// breakGPUs puts exactly these devices of host a in trouble, by index.
func (f *fake) breakGPUs(numbers ...int) {
	found := dgx()
	for _, n := range numbers {
		found["a"].GPUs[n].Trouble = offTheBus
	}
	f.gpus = []map[string]domain.HostGPUs{found}
}

// The document of a pool records what is wrong with its devices, and is written only when that changes.
func TestKeepPools(t *testing.T) {
	f, _ := poolOf(t, "GPU-a4", "GPU-a5")
	e, calls := recorded(f)
	r := reconcile.Reconciler{Engine: e, Controller: true}
	look := func(what string, trouble map[string]string, want ...string) {
		t.Helper()
		calls.calls = nil
		pooled, err := r.KeepPools(t.Context())
		if err != nil || !pooled {
			t.Errorf("%s: there are pools: %t (%v)", what, pooled, err)
		}
		if diff := cmp.Diff(want, calls.made()) +
			cmp.Diff(trouble, documents[domain.GPUPoolDocument](f)["p"].Trouble); diff != "" {
			t.Errorf("%s: calls and trouble (-want +got):\n%s", what, diff)
		}
	}
	var sound map[string]string
	broken := map[string]string{"GPU-a5": offTheBus}
	write := []string{"List gpu-pool", "GPUs", "Lock", "List gpu-pool", "Put gpu-pool"}
	look("all is well", sound, write[:2]...)
	f.breakGPUs(0, 5)
	look("a device fails", broken, write...)
	look("it goes on", broken, write[:2]...)
	f.gpus = []map[string]domain.HostGPUs{{"a": {Unknown: "no agent"}}}
	look("nothing is known", broken, write[:2]...)
	f.gpus = []map[string]domain.HostGPUs{{"a": unreadFor(time.Minute)}}
	look("the driver is gone", map[string]string{"GPU-a4": noDriver, "GPU-a5": noDriver}, write...)
	f.gpus = []map[string]domain.HostGPUs{{"a": {Unknown: "no agent"}}}
	look("nothing is known of it", map[string]string{"GPU-a4": noDriver, "GPU-a5": noDriver}, write[:2]...)
	f.breakGPUs()
	look("it works again", sound, write...)

	// A pending reset survives a restart of the agent, a new controller, and changes of the pool.
	const ecc = "double-bit ECC error (XID 48)"
	found := dgx()
	found["a"].GPUs[4].Trouble, found["a"].GPUs[4].Condemned = ecc, &domain.Condemnation{XID: 48, At: epoch}
	f.gpus = []map[string]domain.HostGPUs{found}
	look("an error calls for a reset", map[string]string{"GPU-a4": ecc}, write...)
	f.breakGPUs()
	look("the agent was restarted", map[string]string{"GPU-a4": ecc}, write[:2]...)
	spec := documents[domain.GPUPoolDocument](f)["p"].Spec
	spec.Strategy = domain.Pack
	putPool(t, r, spec, false)
	look("the pool was changed", map[string]string{"GPU-a4": ecc}, write[:2]...)
	f.breakGPUs()
	f.gpus[0]["a"].GPUs[4].GoneAt = epoch.Add(time.Minute)
	look("it was reset", sound, write...)

	f.breakGPUs(5)
	calls.before = func(call string) error {
		if call == "Lock" {
			pool := documents[domain.GPUPoolDocument](f)["p"]
			pool.Revision, pool.Devices = pool.Revision+1, map[string][]domain.Device{
				"a": {{UUID: "GPU-a5"}, {UUID: "GPU-new"}},
			}
			set(f, pool)
		}
		return nil
	}
	look("the pool is changed meanwhile", sound, write[:4]...)
	calls.before = func(call string) error {
		if call == "Put gpu-pool" {
			return engine.ErrConflict
		}
		return nil
	}
	if _, err := r.KeepPools(t.Context()); !errors.Is(err, engine.ErrConflict) {
		t.Errorf("a conflict: %v", err)
	}

	drop[domain.GPUPoolDocument](f)
	calls.calls = nil
	if pooled, err := r.KeepPools(t.Context()); err != nil || pooled {
		t.Errorf("without pools there are some: %t (%v)", pooled, err)
	}
	if diff := cmp.Diff([]string{"List gpu-pool"}, calls.made()); diff != "" {
		t.Errorf("calls without pools (-want +got):\n%s", diff)
	}
}

// An apply of a pool records what is wrong with the devices that it already had.
func TestPutPoolNotesTrouble(t *testing.T) {
	f, r := poolOf(t, "GPU-a4", "GPU-a5")
	f.breakGPUs(5)
	spec := documents[domain.GPUPoolDocument](f)["p"].Spec
	spec.Strategy = domain.Pack
	putPool(t, r, spec, false)
	if diff := cmp.Diff(map[string]string{"GPU-a5": offTheBus},
		documents[domain.GPUPoolDocument](f)["p"].Trouble); diff != "" {
		t.Errorf("trouble (-want +got):\n%s", diff)
	}
}

// A device that needs a reset is trusted again after being taken out of the pool and put back:
// that is the user's decision.
func TestPutPoolTrustsWhatIsPutBack(t *testing.T) {
	f, r := poolOf(t, "GPU-a4", "GPU-a5")
	found := dgx()
	found["a"].GPUs[5].Trouble, found["a"].GPUs[5].Condemned = offTheBus, &domain.Condemnation{XID: 79, At: epoch}
	f.gpus = []map[string]domain.HostGPUs{found}
	both := documents[domain.GPUPoolDocument](f)["p"].Spec
	_, err := r.KeepPools(t.Context())
	must(t, err)
	f.breakGPUs() // the agent has forgotten it
	_, err = r.KeepPools(t.Context())
	must(t, err)
	if diff := cmp.Diff(map[string]string{"GPU-a5": offTheBus},
		documents[domain.GPUPoolDocument](f)["p"].Trouble); diff != "" {
		t.Errorf("before (-want +got):\n%s", diff)
	}
	one := both
	one.Devices = map[string][]string{"a": {"GPU-a4"}}
	putPool(t, r, one, false)
	putPool(t, r, both, false)
	if pool := documents[domain.GPUPoolDocument](f)["p"]; len(pool.Trouble) > 0 || !pool.Has("GPU-a5") {
		t.Errorf("afterwards the pool is %+v", pool)
	}
}
