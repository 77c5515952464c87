package controller

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// TestObservedMetric: a metric without an algorithm appears in the history with its value, and proposes no count.
func TestObservedMetric(t *testing.T) {
	l := newLab(t, func(p *domain.AutoscalingPolicy) {
		p.Metrics["seen"] = domain.ScalingMetric{Source: p.Metrics["cpu"].Source}
	})
	s := l.controller()
	l.load = 1.4
	if got := l.pass(s, 10*time.Second); got[len(got)-1] != 3 {
		t.Errorf("the counts were %v", got)
	}
	l.must(nil, s.history.Flush(t.Context(), l.now))
	entries := l.entries(t, l.now, autoscale.Selection{})
	for _, e := range entries {
		for _, m := range e.Metrics {
			if m.Name == "seen" && (m.Value == nil || m.Count != nil) {
				t.Errorf("it is shown as %+v", m)
			}
		}
	}
	if status := s.board.statuses()[0].Metrics["seen"]; status.Value == nil || status.Count != nil ||
		len(entries) == 0 {
		t.Errorf("the exported status is %+v, and there are %d entries", status, len(entries))
	}
}

// TestGuardSources: guards that read a JSON endpoint keep members, or have some added. While it can't be read, none is
// removed, and the history says why.
func TestGuardSources(t *testing.T) {
	body := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if body == "" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte(body))
	}))
	defer server.Close()
	busy := domain.ScalingGuards{Busy: &domain.BusyGuard{
		GuardSource: domain.GuardSource{HTTP: &domain.HTTPQueue{URL: server.URL, Path: "activeapps.#"}},
	}}
	moving := domain.ScalingGuards{Busy: &domain.BusyGuard{
		GuardSource: domain.GuardSource{HTTP: &domain.HTTPQueue{URL: server.URL, Path: "moving"}},
		Pauses:      domain.PauseAll,
	}}
	atLeast := domain.ScalingGuards{
		AtLeast: &domain.GuardSource{HTTP: &domain.HTTPQueue{URL: server.URL, Path: "replicas"}},
	}
	for name, test := range map[string]struct {
		guards domain.ScalingGuards
		body   string
		load   float64
		count  int
		says   string
	}{
		"an application runs": {
			busy, `{"activeapps": [{"id": "app-1"}]}`, 0.1, 2,
			"the role is busy: activeapps.# of " + server.URL + " is 1",
		},
		"an application runs, under load": {busy, `{"activeapps": [{"id": "app-1"}]}`, 1.4, 3, "cpu: "},
		"no application runs":             {busy, `{"activeapps": []}`, 0.1, 1, "cpu: "},
		"the master is down": {
			busy, "", 0.1, 2, "it is unknown whether the role is busy: " + server.URL + ": HTTP 503",
		},
		"another answer":                {busy, `{}`, 0.1, 2, `no value at "activeapps.#"`},
		"partitions move":               {moving, `{"moving": true}`, 1.4, 2, "3 wanted, but the role is busy"},
		"partitions are where they are": {moving, `{"moving": false}`, 1.4, 3, "cpu: "},
		"as many are needed": {
			atLeast, `{"replicas": 2}`, 0.1, 2, "1 wanted, but guards.at_least requires 2",
		},
		"more are needed": {
			atLeast, `{"replicas": 4}`, 0.1, 4, "1 wanted, but guards.at_least requires 4",
		},
		"who knows how many are needed": {atLeast, "", 0.1, 2, "it is unknown how many are needed"},
	} {
		t.Run(name, func(t *testing.T) {
			body = test.body
			l := newLab(t, func(p *domain.AutoscalingPolicy) {
				p.Guards = test.guards
				p.ScaleIn.Stabilisation = new(domain.Duration(0))
			})
			s := l.controller()
			l.load = test.load
			if got := l.pass(s, 10*time.Second); got[len(got)-1] != test.count {
				t.Errorf("the counts were %v, want %d", got, test.count)
			}
			l.must(nil, s.history.Flush(t.Context(), l.now))
			entries := l.entries(t, l.now, autoscale.Selection{})
			if !slices.ContainsFunc(entries, func(e autoscale.Entry) bool {
				return strings.Contains(e.Why(), test.says)
			}) {
				t.Errorf("the history does not say %q: %+v", test.says, entries)
			}
			exported := s.board.statuses()[0].Guards
			if last := entries[len(entries)-1].Guards[0]; len(exported) != 1 ||
				(exported[last.Name] == nil) != (last.Value == nil) ||
				last.Value != nil && *exported[last.Name] != *last.Value {
				t.Errorf("%v is exported for %+v", exported, last)
			}
			for _, e := range entries {
				if g := e.Guards; len(g) != 1 || (g[0].Value == nil) != g[0].Never {
					t.Errorf("of the guards it says %+v", g)
				}
			}
		})
	}
}

// TestSilentGuards: a guard that has not had a value for a while is stored for plans and top, no matter how many
// controllers asked it. It is forgotten once it has a value, asks something else, or its policy is gone.
func TestSilentGuards(t *testing.T) {
	body := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if body == "" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = w.Write([]byte(body))
	}))
	defer server.Close()
	atLeast := func(path string) func(p *domain.AutoscalingPolicy) {
		return func(p *domain.AutoscalingPolicy) {
			p.Guards.AtLeast = &domain.GuardSource{HTTP: &domain.HTTPQueue{URL: server.URL, Path: path}}
		}
	}
	l := newLab(t, atLeast("replicas"))
	l.load = 1
	silent := func() []domain.SilentGuard {
		found, err := engine.List[domain.SilentGuardsDocument](t.Context(), l)
		l.must(found, err)
		return found["job/worker"].Guards
	}
	const while = silentAsks * domain.DefaultScalingInterval
	s := l.controller()
	since := l.now
	l.pass(s, while/2)
	s = l.controller() // a successor continues
	l.pass(s, while/2-time.Second)
	if found := silent(); len(found) > 0 {
		t.Errorf("it warns early of %+v", found)
	}
	l.pass(s, 2*domain.DefaultScalingInterval)
	if found := silent(); len(found) != 1 || found[0].Name != domain.GuardAtLeast ||
		found[0].What != "replicas of "+server.URL || !found[0].Since.Equal(since) ||
		!strings.Contains(found[0].Why, "404") {
		t.Errorf("after a while it warns of %+v", found)
	}
	revision := l.revisions(t, domain.SilentGuardsKind)["job/worker"]
	l.pass(s, while)
	if now := l.revisions(t, domain.SilentGuardsKind)["job/worker"]; now != revision {
		t.Errorf("the same is stored again: revision %d, and then %d", revision, now)
	}
	body = "{}"
	l.pass(s, 2*keepEvery)
	if found := silent(); len(found) != 1 || !strings.Contains(found[0].Why, `no value at "replicas"`) {
		t.Errorf("where the answer is another one it warns of %+v", found)
	}
	s = l.controller()
	body = `{"replicas": 1}`
	l.pass(s, domain.DefaultScalingInterval)
	if found := silent(); len(found) > 0 {
		t.Errorf("with a value it warns of %+v", found)
	}

	policy := l.policy()
	atLeast("copies")(&policy)
	l.put(policy)
	l.pass(s, while+domain.DefaultScalingInterval)
	if found := silent(); len(found) != 1 || found[0].What != "copies of "+server.URL {
		t.Errorf("with another path it warns of %+v", found)
	}
	l.drop("job/worker")
	l.pass(l.controller(), time.Second)
	if found := silent(); len(found) > 0 {
		t.Errorf("without a policy it warns of %+v", found)
	}
}

// TestSilentGuardsThatCannotBeRead: a stored document that can't be read is replaced.
func TestSilentGuardsThatCannotBeRead(t *testing.T) {
	l := newLab(t, func(*domain.AutoscalingPolicy) {})
	l.Set(engine.Item{
		Key: engine.Key{Kind: domain.SilentGuardsKind, Name: "job/worker"}, Revision: 3, Data: []byte("{"),
	})
	l.pass(l.controller(), time.Second)
	if found, err := engine.List[domain.SilentGuardsDocument](t.Context(), l); err != nil || len(found) > 0 {
		t.Errorf("%+v is stored (%v)", found, err)
	}
}

// TestGuardsAfterHook: guards are asked again once a before_removal hook is done, which may take hours. If one of them
// has turned against the removal, the members stay, and the hook is cancelled. One that does so for a moment only, such
// as while the hook's own work is still seen, is waited for.
func TestGuardsAfterHook(t *testing.T) {
	var body atomic.Pointer[string]
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		if *body.Load() == "" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = io.WriteString(w, *body.Load()) // the client may have gone
	}))
	defer server.Close()
	source := domain.GuardSource{HTTP: &domain.HTTPQueue{URL: server.URL}}
	atLeast, busy := domain.ScalingGuards{AtLeast: &source}, domain.ScalingGuards{
		Busy: &domain.BusyGuard{GuardSource: source, CPUPercent: new(50.0)},
	}
	for name, test := range map[string]struct {
		guards domain.ScalingGuards
		// before, during and after are what the source says, and load is that of the member at the end.
		before, during, after string
		load                  float64
		count                 int
		says                  string
	}{
		"unknown how many are needed": {
			atLeast, "1", "", "", 0, 2, "2 → 1 held 1 wanted, but it is unknown how many are needed",
		},
		"unknown for a moment":      {atLeast, "1", "", "1", 0, 1, "2 → 1 done"},
		"the role is busy":          {busy, "0", "1", "1", 0, 2, "2 → 1 held 1 wanted, but the role is busy"},
		"the role was busy":         {busy, "0", "1", "0", 0, 1, "2 → 1 done"},
		"the member is busy":        {busy, "0", "0", "0", 0.9, 2, "2 → 1 held job-worker-1 stays: it is busy"},
		"the member is hardly busy": {busy, "0", "0", "0", 0.4, 1, "2 → 1 done"},
	} {
		t.Run(name, func(t *testing.T) {
			body.Store(&test.before)
			r := newRebalancer(t)
			l := hookLab(t, domain.ScalingHooks{BeforeRemoval: r.lasting()})
			l.requires(1)
			policy := l.policy()
			policy.Guards = test.guards
			l.put(policy)
			l.load = 0.1
			w := l.watcher()
			if test.after != test.during {
				w.hookPace.lag = time.Minute
			}
			w.until("the hook to be at work", func() bool { asked, _ := r.seen(); return len(asked) > 2 })
			body.Store(&test.during)
			l.mu.Lock()
			l.loads[worker(1)] = test.load
			l.mu.Unlock()
			for range domain.DefaultScalingInterval / time.Second {
				w.step()
			}
			before := asked.Load()
			r.answers(http.StatusOK, "")
			if test.after != test.during {
				acctest.Eventually(t, "the guard to be asked", func() bool { return asked.Load() > before+1 })
			}
			body.Store(&test.after)
			w.until("the removal to end", func() bool { return strings.Contains(w.historyText(), test.says) })
			off := "DELETE /changes/" + r.ids()[0]
			w.until("the hook to be cancelled, if they stay", func() bool {
				asked, _ := r.seen()
				return test.count == 1 || slices.Contains(asked, off)
			})
			if l.count() != test.count {
				t.Errorf("the count is %d, want %d", l.count(), test.count)
			}
		})
	}
}
