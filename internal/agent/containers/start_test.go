//go:build linux

package containers

import (
	"encoding/json"
	"net"
	"net/http"
	"path"
	"path/filepath"
	"testing"

	"github.com/docker/docker/api/types/container"
)

// TestPauseNoticedLate: an Engine refuses to pause a container that its runtime has paused already, when it has not
// noticed that yet.
func TestPauseNoticedLate(t *testing.T) {
	for name, test := range map[string]struct {
		notices bool
		want    string
	}{
		"it notices": {true, ""},
		"never": {
			false, "the Docker Engine says: Cannot pause container c: cannot pause a paused container: unknown",
		},
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
				case "pause":
					w.WriteHeader(http.StatusInternalServerError)
					answer = map[string]string{
						"message": "Cannot pause container c: cannot pause a paused container: unknown",
					}
				case "json":
					looks++
					answer = container.InspectResponse{ContainerJSONBase: &container.ContainerJSONBase{
						State: &container.State{Running: true, Paused: test.notices && looks > 2},
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
			if err := e.Pause(t.Context(), "c"); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("the error is %q, not %q", got, test.want)
			}
		})
	}
}
