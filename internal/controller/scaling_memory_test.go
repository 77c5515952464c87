package controller

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// many returns this many policies with a state each.
func many(policies int, remembers func(i int) autoscale.State) map[string]*followed {
	all := map[string]*followed{}
	for i := range policies {
		all[domain.PolicyKey("job", fmt.Sprintf("role-%d", i))] = &followed{state: remembers(i)}
	}
	return all
}

// begun returns the state of a policy that has just begun.
func begun(i int) autoscale.State { return autoscale.State{Since: noon.Add(time.Duration(i))} }

// expectRemembered fails unless the stored state is that of the policies.
func (i *items) expectRemembered(t *testing.T, want map[string]*followed) *memory {
	t.Helper()
	m := newMemory(i)
	got, unread, err := m.load(t.Context())
	if err = errors.Join(err, unread); err != nil {
		t.Fatal(err)
	}
	states := map[string]remembered{}
	for key, f := range want {
		states[key] = remembered{f.state, f.document.ID, f.windows}
	}
	if !reflect.DeepEqual(got, states) { // a diff of all takes seconds
		t.Errorf("remembered (-want +got):\n%.2000s", cmp.Diff(states, got))
	}
	return m
}

// TestLargeMemory: a thousand policies with ever-changing counts and the seasons of several metrics. All of that is
// stored and read again after the state of few policies was stored, and so are later states.
func TestLargeMemory(t *testing.T) {
	s := newItems()
	random := rand.New(rand.NewPCG(1, 2))
	few := many(100, begun)
	if err := newMemory(s).store(t.Context(), few, noon); err != nil {
		t.Fatal(err)
	}
	m := s.expectRemembered(t, few)
	all := many(1000, func(i int) autoscale.State {
		state := begun(i)
		for n := range 100 {
			state.Asked = append(state.Asked, autoscale.At[int]{
				At:    noon.Add(time.Duration(n)*5*time.Second + time.Duration(random.IntN(1e9))),
				Value: random.IntN(1000),
			})
		}
		state.Metrics = map[string]autoscale.Memory{}
		for n := range 2 {
			profile := make([]float32, 288)
			for i := range profile {
				profile[i] = random.Float32()
			}
			state.Metrics[fmt.Sprint(n)] = autoscale.Memory{Forecast: &autoscale.Trend{
				At: noon, Season: &autoscale.Season{Length: domain.Duration(24 * time.Hour), Profile: profile},
			}}
		}
		return state
	})
	if err := m.store(t.Context(), all, noon); err != nil {
		t.Fatal(err)
	}
	m = s.expectRemembered(t, all)
	if err := m.store(t.Context(), few, noon); err != nil {
		t.Fatal(err)
	}
	s.expectRemembered(t, few)
}

// TestMemoryGrows: a crash between two writes of a growing memory loses nothing, and a moved policy is
// read from its new shard.
func TestMemoryGrows(t *testing.T) {
	s := newItems()
	all := many(200, begun)
	m := newMemory(s)
	if err := m.store(t.Context(), all, noon); err != nil {
		t.Fatal(err)
	}
	m.grow()
	died := errors.New("died")
	for puts := range 2 * leastShards {
		for _, f := range all {
			f.state.LastChange = noon
		}
		left := 1
		s.fault = func(_ string, done bool) error {
			if left == 0 && !done {
				return died
			}
			if done {
				left--
			}
			return nil
		}
		if err := m.store(t.Context(), all, noon); (err == nil) != (puts == 2*leastShards-1) {
			t.Fatalf("after %d writes: %v", puts, err)
		}
		s.fault = noFault
		got, unread, err := newMemory(s).load(t.Context())
		if err != nil || unread != nil || len(got) != len(all) {
			t.Errorf("%d policies are remembered after %d writes, want %d (%v, %v)", len(got), puts, len(all), unread,
				err)
		}
	}
	s.expectRemembered(t, all)
}

// TestMemoryThatCannotBeStored: a shard that can't be written does not prevent writing others, and is written once
// possible, even if nothing has changed since.
func TestMemoryThatCannotBeStored(t *testing.T) {
	s := newItems()
	all := many(100, begun)
	m := newMemory(s)
	down := errors.New("the engine is down")
	s.fault = func(call string, _ bool) error {
		if call == "put scaling-state/0" {
			return down
		}
		return nil
	}
	if err := m.store(t.Context(), all, noon); !errors.Is(err, down) ||
		len(s.revisions(t, memoryKind)) != leastShards-1 {
		t.Errorf("%v are stored: %v", s.revisions(t, memoryKind), err)
	}
	s.fault = noFault
	if err := m.store(t.Context(), all, noon); err != nil {
		t.Error(err)
	}
	s.expectRemembered(t, all)
}

// TestMemoryThatCannotBeRead: policies continue without the state that can't be read, which is rewritten.
func TestMemoryThatCannotBeRead(t *testing.T) {
	s := newItems()
	all := many(100, begun)
	if err := newMemory(s).store(t.Context(), all, noon); err != nil {
		t.Fatal(err)
	}
	revisions := s.revisions(t, memoryKind)
	for name, data := range map[string]string{"3": "no JSON", "x": "whatever"} {
		item := engine.Item{
			Key: engine.Key{Kind: memoryKind, Name: name}, Revision: revisions[name], Data: []byte(data),
		}
		if _, err := s.Put(t.Context(), item); err != nil {
			t.Fatal(err)
		}
	}
	m := newMemory(s)
	got, unread, err := m.load(t.Context())
	const called = "part of the autoscaling state "
	if err != nil || unread == nil || !strings.Contains(unread.Error(), called+`"3": `) ||
		!strings.Contains(unread.Error(), called+`"x": `) {
		t.Errorf("unread is %v (%v)", unread, err)
	}
	if len(got) == 0 || len(got) >= len(all) {
		t.Errorf("%d of %d policies are remembered", len(got), len(all))
	}
	if err := m.store(t.Context(), all, noon); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), engine.Key{Kind: memoryKind, Name: "x"}); err != nil {
		t.Fatal(err)
	}
	s.expectRemembered(t, all)
}

// TestScalerKeepsWhatItCan: a history that can't be stored does not prevent storing the state.
func TestScalerKeepsWhatItCan(t *testing.T) {
	l := newLab(t, plain)
	s := l.controller()
	l.load = 2
	l.pass(s, time.Second)
	down := errors.New("the engine is down")
	l.fault = func(call string, _ bool) error {
		if strings.HasPrefix(call, putChunk) {
			return down
		}
		return nil
	}
	if err := s.keep(t.Context(), l.now); !errors.Is(err, down) || !s.changed {
		t.Errorf("without a history, it is to be kept again: %v (%v)", s.changed, err)
	}
	l.fault = noFault
	if got, _, err := newMemory(l).load(t.Context()); err != nil || got["job/worker"].LastChange.IsZero() {
		t.Errorf("remembered is %v (%v)", got, err)
	}
	if err := s.keep(t.Context(), l.now); err != nil || s.changed {
		t.Errorf("with one, it is to be kept again: %v (%v)", s.changed, err)
	}
}

// TestWindowOutlivesController: the next controller, too, sees a value over its whole window; the momentary value
// alone would make it act.
func TestWindowOutlivesController(t *testing.T) {
	var length atomic.Int64
	length.Store(20)
	queue := httptest.NewServer(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, length.Load()) }),
	)
	defer queue.Close()
	l := newLab(t, func(p *domain.AutoscalingPolicy) {
		p.Metrics = map[string]domain.ScalingMetric{"jobs": {
			Source:    domain.ScalingSource{Queue: &domain.QueueSource{HTTP: &domain.HTTPQueue{URL: queue.URL}}},
			Window:    new(domain.Duration(time.Minute)),
			Algorithm: domain.ScalingAlgorithm{Queue: &domain.QueueAlgorithm{PerMember: 10}},
		}}
	})
	l.pass(l.controller(), 90*time.Second)
	length.Store(60)
	if got := l.pass(l.controller(), time.Second); !slices.Equal(got, []int{3}) {
		t.Errorf("with a queue that was 20 long for a minute, and is 60 now, the counts are %v", got)
	}
}
