//go:build linux

package process

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/patience"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// TestAskAgentThatStarts: until the resident agent has found the GPUs, another is run that waits for them and measures
// for a moment; if that fails, the resident's partial report is returned. A query for a window waits for a resident
// that was just started.
func TestAskAgentThatStarts(t *testing.T) {
	const here, starting, run = `{"node": "resident"}`, `{"node": "resident", "starting": true}`, `echo '{"node": "run"}'`
	for name, test := range map[string]struct {
		// resident are its answers, of which the last is repeated.
		resident         []string
		run, want, brief string
		// ordered is the time at which it was started, if known. A time in the future counts as recent throughout the
		// test.
		ordered time.Time
	}{
		"it stays": {resident: []string{here}, run: "exit 1", want: "resident"},
		"it starts": {
			resident: []string{starting}, run: run, want: "run", brief: "not the window: the agent has just started",
		},
		"none can be run":    {resident: []string{starting}, run: "exit 1", want: "resident"},
		"it does not answer": {resident: []string{""}, run: run, want: "run", brief: "parsing the agent's report"},
		"it was ordered lately": {
			resident: []string{"", starting, here}, ordered: time.Now().Add(patience.Limit), run: "exit 1",
			want: "resident",
		},
		"it was ordered earlier": {
			resident: []string{"", starting, here}, ordered: time.Now().Add(-agentArrival), run: run, want: "run",
			brief: "parsing the agent's report",
		},
	} {
		t.Run(name, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), telemetry.AgentName)
			if err := os.WriteFile(program, []byte("#!/bin/sh\n"+test.run+"\n"), 0o700); err != nil { //nolint:gosec // a program
				t.Fatal(err)
			}
			e, err := Open(domain.ClusterRef{Name: "lab"}, engine.Settings{StateDir: t.TempDir()},
				Program{File: program})
			if err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(filepath.Dir(e.agentSocket()), 0o700); err != nil {
				t.Fatal(err)
			}
			listener, err := telemetry.Listen(e.agentSocket())
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			var asked atomic.Int32
			go func() {
				done <- bounded.Serve(ctx, listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					_, _ = w.Write([]byte(test.resident[min(int(asked.Add(1)), len(test.resident))-1]))
				}))
			}()
			if !test.ordered.IsZero() {
				spec := e.dir.Document(statedir.Specs, agentMember)
				if err := errors.Join(os.MkdirAll(filepath.Dir(spec), 0o700),
					statedir.Write(spec, domain.MemberSpec{}, statedir.Volatile),
					os.Chtimes(spec, test.ordered, test.ordered)); err != nil {
					t.Fatal(err)
				}
			}
			report, brief, err := e.askAgent(t.Context(), telemetry.Query{Window: time.Minute})
			if err != nil || report.Node != test.want {
				t.Errorf("%q reported, want %q: %v", report.Node, test.want, err)
			}
			if (brief == "") != (test.brief == "") || !strings.Contains(brief, test.brief) {
				t.Errorf("it does not cover the window, as %q, want %q", brief, test.brief)
			}
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}
