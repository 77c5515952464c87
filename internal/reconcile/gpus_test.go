package reconcile_test

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// onBoth is the pool "p" of devices on both hosts.
var onBoth = domain.GPUPool{
	Cluster: "lab", Name: "p", Devices: map[string][]string{"a": {"GPU-a4", "GPU-a5"}, "b": {"GPU-b0"}},
}

// interfering returns a reconciler of a fake engine with a pool. It runs do before the first call named call that
// follows a call named after.
func interfering(t *testing.T, f *fake, after, call string, do func()) reconcile.Reconciler {
	t.Helper()
	e, calls := recorded(f)
	passed, done := after == "", false
	calls.before = func(made string) error {
		if made == call && passed && !done {
			done = true
			do()
		}
		passed = passed || made == after
		return nil
	}
	t.Cleanup(func() {
		if !done {
			t.Errorf("there was no %s after %s: %v", call, after, calls.made())
		}
	})
	return reconcile.Reconciler{Engine: e}
}

// isFree fails if somebody holds the allocation lock.
func (f *fake) isFree(t *testing.T) func() {
	return func() {
		f.mutex.Lock()
		defer f.mutex.Unlock()
		if holder, locked := f.locks["allocation"]; locked {
			t.Errorf("hosts are asked about their GPUs while all wait for %s", holder.Operation)
		}
	}
}

// Hosts may be slow to report their GPUs: only those who ask wait for that.
func TestHostsAreAskedWhileNobodyWaits(t *testing.T) {
	for name, do := range map[string]func(t *testing.T, f *fake){
		"a group is applied": func(t *testing.T, f *fake) {
			must(t, interfering(t, f, "Lock", "GPUs", f.isFree(t)).Update(within(t), pooled("mnist")))
		},
		"a group grows": func(t *testing.T, f *fake) {
			must(t, reconcile.Reconciler{Engine: f}.Update(within(t), pooled("mnist")))
			three := pooled("mnist")
			three.Roles["worker"] = domain.Role{Replicas: new(3), GPUs: &domain.GPURequest{Pool: "p"}}
			must(t, interfering(t, f, "Lock", "GPUs", f.isFree(t)).Update(within(t), three))
		},
		"a member is moved": func(t *testing.T, f *fake) {
			one := pooled("mnist")
			one.Roles["worker"] = domain.Role{Replicas: new(1), GPUs: &domain.GPURequest{Pool: "p"}}
			must(t, reconcile.Reconciler{Engine: f}.Update(within(t), one))
			from := f.document(t, "mnist").Assignments["mnist-worker-0"].Host
			f.lose(from)
			_, err := interfering(t, f, "Lock", "GPUs", f.isFree(t)).Keep(within(t), "mnist")
			must(t, err)
			if now := f.document(t, "mnist").Assignments["mnist-worker-0"]; now.Host == from || now.GPUs == "" {
				t.Errorf("its member was on %s, and is now at %+v", from, now)
			}
		},
		"a pool is changed": func(t *testing.T, f *fake) {
			putPool(t, interfering(t, f, "", "GPUs", f.isFree(t)), onBoth, false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			f.traits.MemberAddress = addressed
			f.gpus = []map[string]domain.HostGPUs{dgx()}
			putPool(t, reconcile.Reconciler{Engine: f}, onBoth, true)
			do(t, f)
		})
	}
}

// Changes between the hosts' report and the choice: who holds which device is read when devices are chosen.
func TestStaleHostReports(t *testing.T) {
	t.Run("another group takes the devices", func(t *testing.T) {
		f, other := poolOf(t, "GPU-a4", "GPU-a5")
		r := interfering(t, f, "GPUs", "Lock", func() { must(t, other.Update(within(t), pooled("other"))) })
		if err := r.Update(within(t), pooled("mnist")); err == nil ||
			!strings.Contains(err.Error(), "held by other-worker-0 of group other") {
			t.Errorf("devices that another group took: %v", err)
		}
		if _, err := engine.Get[domain.GroupDocument](t.Context(), f, "mnist"); !errors.Is(err, engine.ErrNotFound) ||
			len(f.cast()) != 2 {
			t.Errorf("of a group without devices there is: %v, beside %d members", err, len(f.cast()))
		}
	})
	t.Run("who used the devices unseen is gone", func(t *testing.T) {
		f, other := poolOf(t, "GPU-a4", "GPU-a5")
		must(t, other.Update(within(t), pooled("other")))
		for _, n := range []int{4, 5} {
			f.gpus[0]["a"].GPUs[n].MemoryUsedMiB = new(int64(20_000))
		}
		r := interfering(t, f, "GPUs", "Lock", func() { must(t, other.Destroy(within(t), "other")) })
		must(t, r.Update(within(t), pooled("mnist")))
	})
	old := dgx()
	maps.DeleteFunc(old, func(host string, _ domain.HostGPUs) bool { return host == "b" })
	only := domain.GPUPool{Cluster: "lab", Name: "p", Devices: map[string][]string{"b": {"GPU-b0"}}}
	spec := pooled("mnist")
	spec.Roles["worker"] = domain.Role{Replicas: new(1), GPUs: &domain.GPURequest{Pool: "p"}}
	t.Run("a host joins that has the devices", func(t *testing.T) {
		f := newFake()
		r := reconcile.Reconciler{Engine: f}
		f.gpus = []map[string]domain.HostGPUs{old, dgx()}
		putPool(t, r, only, true)
		f.gpus = []map[string]domain.HostGPUs{old, dgx()}
		must(t, r.Update(within(t), spec))
	})
	t.Run("hosts join all the time", func(t *testing.T) {
		f := newFake()
		r := reconcile.Reconciler{Engine: f}
		f.gpus = []map[string]domain.HostGPUs{dgx()}
		putPool(t, r, only, true)
		f.gpus = []map[string]domain.HostGPUs{old}
		if err := r.Update(within(t), spec); err == nil || !strings.Contains(err.Error(), "apply again") {
			t.Errorf("hosts that never report their GPUs: %v", err)
		}
	})
}
