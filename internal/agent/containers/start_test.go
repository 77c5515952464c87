//go:build linux

package containers

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"path"
	"path/filepath"
	"testing"

	"github.com/docker/docker/api/types/container"
)

// TestHaltRefused: a runtime refuses to halt or resume a container a second time, when its Engine has not noticed the
// first yet, or fails to halt it at first.
func TestHaltRefused(t *testing.T) {
	const (
		halted  = "Cannot pause container c: cannot pause a paused container: unknown"
		running = "Cannot unpause container c: cannot resume a running process: unknown"
		busy    = "Cannot pause container c: OCI runtime pause failed: unable to freeze: unknown"
		always  = 1000
	)
	for name, test := range map[string]struct {
		call    func(*Engine, context.Context, string) error
		refusal string
		times   int  // that it is refused
		paused  bool // once it notices
		notices bool
		want    string
	}{
		"it notices the pause":  {(*Engine).Pause, halted, always, true, true, ""},
		"never the pause":       {(*Engine).Pause, halted, always, true, false, "the Docker Engine says: " + halted},
		"it notices the resume": {(*Engine).Continue, running, always, false, true, ""},
		"never the resume":      {(*Engine).Continue, running, always, false, false, "the Docker Engine says: " + running},
		"it is busy":            {(*Engine).Pause, busy, 2, true, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			looks, calls := 0, 0
			socket := filepath.Join(t.TempDir(), "docker.sock")
			listener, err := net.Listen("unix", socket) //nolint:noctx // it answers at once
			if err != nil {
				t.Fatal(err)
			}
			server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { //nolint:gosec // the client is this test
				w.Header().Set("Content-Type", "application/json")
				var answer any
				switch path.Base(r.URL.Path) {
				case "_ping":
					w.Header().Set("Api-Version", "1.41")
				case "pause", "unpause":
					if calls++; calls > test.times {
						w.WriteHeader(http.StatusNoContent)
						return
					}
					w.WriteHeader(http.StatusInternalServerError)
					answer = map[string]string{"message": test.refusal}
				case "json":
					looks++
					paused := test.paused == (test.notices && looks > 3)
					answer = container.InspectResponse{ContainerJSONBase: &container.ContainerJSONBase{
						State: &container.State{Running: true, Paused: paused},
					}}
				}
				if err := json.NewEncoder(w).Encode(answer); err != nil {
					t.Error(err)
				}
			})}
			go func() { _ = server.Serve(listener) }()
			t.Cleanup(func() { _ = server.Close() })
			e, err := Open(socket)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := test.call(e, t.Context(), "c"); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("the error is %q, not %q", got, test.want)
			}
		})
	}
}
