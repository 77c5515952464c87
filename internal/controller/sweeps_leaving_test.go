package controller

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// lingering is a track with a single GPU, whose members stay when they are removed until they are let go.
type lingering struct {
	*track

	removed []string
}

// newLingering returns a lab with a sweep of two runs that need the GPU.
func newLingering(t *testing.T) *lingering {
	t.Helper()
	l := &lingering{track: newTrack(t, func(*domain.Sweep) {})}
	device := domain.Device{UUID: "GPU-a", MemoryMiB: 40_000}
	edit(t, l.items, "p", func(doc *domain.GPUPoolDocument) {
		doc.Spec = domain.GPUPool{Cluster: "lab", Name: "p", Devices: map[string][]string{"a": {device.UUID}}}
		doc.Devices = map[string][]domain.Device{"a": {device}}
	})
	l.change(func(s *domain.Sweep) {
		s.Runs = map[string]map[string]string{"s-0": {"I": "0"}, "s-1": {"I": "1"}}
		s.GPUs, s.MaxParallel = &domain.GPURequest{Pool: "p"}, nil
	})
	return l
}

// change applies another specification of the sweep.
func (l *lingering) change(change func(s *domain.Sweep)) {
	l.Helper()
	r := reconcile.Reconciler{Engine: l}
	found, err := r.Sweep(l.Context(), "lr")
	l.must(nil, err)
	spec := found.Spec
	spec.Runs = maps.Clone(spec.Runs)
	change(&spec)
	l.must(r.PutSweep(l.Context(), spec, false))
}

func (l *lingering) Snapshot() engine.Engine { return l }

func (l *lingering) GPUs(context.Context) (map[string]domain.HostGPUs, error) {
	return map[string]domain.HostGPUs{
		"a": {GPUs: []domain.GPU{{Device: domain.Device{UUID: "GPU-a", MemoryMiB: 40_000}}}}, "b": {},
	}, nil
}

func (l *lingering) Remove(_ context.Context, names []string) error {
	l.removed = append(l.removed, names...)
	return nil
}

// A run that no longer counts holds its GPU until its member is gone, whatever became of it in between.
func TestLeavingRunsHoldGPUs(t *testing.T) {
	alters := func(s *domain.Sweep) { s.Runs["s-0"] = map[string]string{"I": "2"} }
	for name, ends := range map[string]func(l *lingering, s *sweeper){
		"cancelled": func(l *lingering, _ *sweeper) { l.request("s-0", domain.WishCancel) },
		"taken out": func(l *lingering, _ *sweeper) {
			l.change(func(s *domain.Sweep) { delete(s.Runs, "s-0") })
		},
		"cancelled, and taken out": func(l *lingering, s *sweeper) {
			l.request("s-0", domain.WishCancel)
			l.must(s.look(l.Context(), time.Now()))
			l.change(func(s *domain.Sweep) { delete(s.Runs, "s-0") })
		},
		"changed, and cancelled": func(l *lingering, _ *sweeper) {
			l.change(alters)
			l.request("s-0", domain.WishCancel)
		},
		"changed, and paused": func(l *lingering, _ *sweeper) {
			l.change(alters)
			l.request("s-0", domain.WishPause)
		},
		"cancelled, changed, and cancelled": func(l *lingering, s *sweeper) {
			l.request("s-0", domain.WishCancel)
			l.must(s.look(l.Context(), time.Now()))
			l.change(alters)
			l.request("s-0", domain.WishCancel)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLingering(t)
			s := l.sweeper(l)
			l.must(s.look(t.Context(), time.Now()))
			first, second := domain.RunName("lr", "s-0"), domain.RunName("lr", "s-1")
			if l.begun[first] != 1 || l.begun[second] != 0 {
				t.Fatalf("at first, these have started: %v", l.begun)
			}
			ends(l, s)
			for _, who := range []string{"its controller", "its controller at the next look", "the next controller"} {
				if who == "the next controller" {
					s = l.sweeper(l)
				}
				l.must(s.look(t.Context(), time.Now()))
				if l.begun[second] > 0 {
					t.Fatalf("%s gives its GPU away", who)
				}
			}
			if !slices.Contains(l.removed, first) {
				t.Errorf("these were removed: %v", l.removed)
			}
			l.must(nil, l.track.Remove(t.Context(), []string{first}))
			l.must(s.look(t.Context(), time.Now()))
			if l.begun[second] != 1 || l.begun[first] > 1 {
				t.Errorf("once it is gone, these have started: %v", l.begun)
			}
			_, declared := s.sweeps["lr"].spec.Runs["s-0"]
			if _, remembered := s.sweeps["lr"].record.Runs()["s-0"]; remembered != declared {
				t.Errorf("it is remembered: %t", remembered)
			}
		})
	}
}

// A run that was taken out and is declared again starts afresh, even if its former member is still there.
func TestRunDeclaredAgain(t *testing.T) {
	l := newLingering(t)
	s := l.sweeper(l)
	l.must(s.look(t.Context(), time.Now()))
	first := domain.RunName("lr", "s-0")
	l.request("s-0", domain.WishCancel)
	l.must(s.look(t.Context(), time.Now()))
	var own map[string]string
	l.change(func(s *domain.Sweep) { own = s.Runs["s-0"]; delete(s.Runs, "s-0") })
	l.must(s.look(t.Context(), time.Now()))
	l.change(func(s *domain.Sweep) { s.Runs["s-0"] = own })
	l.must(s.look(t.Context(), time.Now()))
	l.must(nil, l.track.Remove(t.Context(), []string{first}))
	l.must(s.look(t.Context(), time.Now()))
	if l.begun[first] != 2 || l.stateOf("s-0") != domain.RunRunning {
		t.Errorf("it is %s, and these have started: %v", l.stateOf("s-0"), l.begun)
	}
}

// So does a cancelled run of a sweep that is being destroyed.
func TestLeavingRunsOfEndingSweep(t *testing.T) {
	l := newLingering(t)
	s := l.sweeper(l)
	l.must(s.look(t.Context(), time.Now()))
	l.request("s-0", domain.WishCancel)
	l.request("s-1", domain.WishCancel)
	l.must(s.look(t.Context(), time.Now()))
	found, err := reconcile.Reconciler{Engine: l}.Sweep(t.Context(), "lr")
	l.must(nil, err)
	edit(t, l.items, "lr", func(doc *domain.SweepDocument) { doc.Ending = true })
	other := found.Spec
	other.Name = "other"
	l.must(reconcile.Reconciler{Engine: l}.PutSweep(t.Context(), other, true))
	l.must(s.look(t.Context(), time.Now()))
	if n := l.begun[domain.RunName("other", "s-0")]; n > 0 {
		t.Error("its GPU is given away")
	}
	l.must(nil, l.track.Remove(t.Context(), []string{domain.RunName("lr", "s-0")}))
	l.must(s.look(t.Context(), time.Now()))
	if n := l.begun[domain.RunName("other", "s-0")]; n != 1 {
		t.Errorf("once it is gone, the other sweep has started %d runs", n)
	}
}
