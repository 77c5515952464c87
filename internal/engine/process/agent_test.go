package process

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// TestAskAgentThatStarts: while the resident agent has not found the GPUs yet, one is run that waits for them; where that fails, what the resident
// knows is better than nothing.
func TestAskAgentThatStarts(t *testing.T) {
	for name, test := range map[string]struct{ resident, run, want string }{
		"it stays":           {`{"node": "resident"}`, "exit 1", "resident"},
		"it starts":          {`{"node": "resident", "starting": true}`, `echo '{"node": "run"}'`, "run"},
		"none can be run":    {`{"node": "resident", "starting": true}`, "exit 1", "resident"},
		"it does not answer": {"", `echo '{"node": "run"}'`, "run"},
	} {
		t.Run(name, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), telemetry.AgentName)
			if err := os.WriteFile(program, []byte("#!/bin/sh\n"+test.run+"\n"), 0o700); err != nil { //nolint:gosec // a program
				t.Fatal(err)
			}
			e, err := Open("lab", engine.Settings{StateDir: t.TempDir()}, Program{File: program})
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
			go func() {
				done <- telemetry.Serve(ctx, listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(test.resident)) }))
			}()
			report, err := e.askAgent(t.Context(), 0)
			if err != nil || report.Node != test.want {
				t.Errorf("%q told, want %q: %v", report.Node, test.want, err)
			}
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}
