package controller

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// TestObservedMetric: a metric without an algorithm is in the history with its value, and asks for nothing.
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
	if status := s.board.statuses()[0].Metrics["seen"]; status.Value == nil || status.Count != nil || len(entries) == 0 {
		t.Errorf("Prometheus is told %+v, and there are %d entries", status, len(entries))
	}
}

// TestGuardSources: what a page tells is asked, and holds members, or has some added; while it can't be read, none goes, and the history says why.
func TestGuardSources(t *testing.T) {
	page := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if page == "" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte(page))
	}))
	defer server.Close()
	busy := domain.ScalingGuards{Busy: &domain.BusyGuard{GuardSource: domain.GuardSource{HTTP: &domain.HTTPQueue{URL: server.URL, Path: "activeapps.#"}}}}
	moving := domain.ScalingGuards{Busy: &domain.BusyGuard{GuardSource: domain.GuardSource{HTTP: &domain.HTTPQueue{URL: server.URL, Path: "moving"}}, Pauses: domain.PauseAll}}
	atLeast := domain.ScalingGuards{AtLeast: &domain.GuardSource{HTTP: &domain.HTTPQueue{URL: server.URL, Path: "replicas"}}}
	for name, test := range map[string]struct {
		guards domain.ScalingGuards
		page   string
		load   float64
		count  int
		says   string
	}{
		"an application runs":             {busy, `{"activeapps": [{"id": "app-1"}]}`, 0.1, 2, "it is busy: activeapps.# of " + server.URL + " is 1"},
		"an application runs, under load": {busy, `{"activeapps": [{"id": "app-1"}]}`, 1.4, 3, "cpu: "},
		"no application runs":             {busy, `{"activeapps": []}`, 0.1, 1, "cpu: "},
		"the master is down":              {busy, "", 0.1, 2, "it can't be told whether it is busy: " + server.URL + ": it answers 503"},
		"another page":                    {busy, `{}`, 0.1, 2, `there is nothing at "activeapps.#"`},
		"partitions move":                 {moving, `{"moving": true}`, 1.4, 2, "3 wanted, but it is busy"},
		"partitions are where they are":   {moving, `{"moving": false}`, 1.4, 3, "cpu: "},
		"as many are needed":              {atLeast, `{"replicas": 2}`, 0.1, 2, "1 wanted, but guards.at_least tells 2"},
		"more are needed":                 {atLeast, `{"replicas": 4}`, 0.1, 4, "1 wanted, but guards.at_least tells 4"},
		"who knows how many are needed":   {atLeast, "", 0.1, 2, "it can't be told how many are needed"},
	} {
		t.Run(name, func(t *testing.T) {
			page = test.page
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
			if !slices.ContainsFunc(entries, func(e autoscale.Entry) bool { return strings.Contains(e.Why(), test.says) }) {
				t.Errorf("the history does not say %q: %+v", test.says, entries)
			}
			for _, e := range entries {
				if g := e.Guards; len(g) != 1 || (g[0].Value == nil) != g[0].Never {
					t.Errorf("of the guards it says %+v", g)
				}
			}
		})
	}
}
