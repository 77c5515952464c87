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

// TestHaltNoticedLate: a runtime refuses to halt or resume a container a second time, when its Engine has not noticed
// the first yet.
func TestHaltNoticedLate(t *testing.T) {
	const (
		halted  = "Cannot pause container c: cannot pause a paused container: unknown"
		running = "Cannot unpause container c: cannot resume a running process: unknown"
	)
	for name, test := range map[string]struct {
		call    func(*Engine, context.Context, string) error
		refusal string
		paused  bool // once it notices
		notices bool
		want    string
	}{
		"it notices the pause":  {(*Engine).Pause, halted, true, true, ""},
		"never the pause":       {(*Engine).Pause, halted, true, false, "the Docker Engine says: " + halted},
		"it notices the resume": {(*Engine).Continue, running, false, true, ""},
		"never the resume":      {(*Engine).Continue, running, false, false, "the Docker Engine says: " + running},
	} {
		t.Run(name, func(t *testing.T) {
			looks := 0
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
