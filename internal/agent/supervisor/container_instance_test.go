//go:build linux

package supervisor

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/containers"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/units"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// TestEngineAwayForAMoment: a container ended with its Engine only if that did not answer since it was last seen
// running.
func TestEngineAwayForAMoment(t *testing.T) {
	const (
		away    = "away"
		running = `{"Running": true, "StartedAt": "2026-11-28T12:00:00Z"}`
		ended   = `{"ExitCode": 7, "StartedAt": "2026-11-28T12:00:00Z", "FinishedAt": "2026-11-28T12:00:09Z"}`
	)
	for name, c := range map[string]struct {
		states []string
		want   string
	}{
		"answers all the time":        {[]string{running, ended}, ""},
		"is away before a later look": {[]string{running, away, running, ended}, ""},
		"is away at the end":          {[]string{running, away, ended}, "the Docker Engine was restarted"},
	} {
		t.Run(name, func(t *testing.T) {
			docker, look := serveStates(t, c.states...)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			launcher := &contained{
				done: ctx, dir: statedir.Dir{Root: t.TempDir(), Cluster: "lab"}, log: slog.New(slog.DiscardHandler),
				engine: docker, manager: &units.Manager{}, needed: func() {}, running: map[string]*containerInstance{},
				session: session{up: true}, unit: engineUnit{known: true}, changed: make(chan struct{}),
			}
			if err := launcher.dir.Create(); err != nil {
				t.Fatal(err)
			}
			i := launcher.instance(domain.MemberSpec{Name: "job-ps-0"}, "job-ps-0", "1")
			*look = i.look
			i.live(nil)
			if r := i.result(); r.code != 7 || r.interrupted != c.want {
				t.Errorf("the container ended with %d, interrupted by %q", r.code, r.interrupted)
			}
		})
	}
}

// serveStates returns an Engine that answers with one state of a container after the other, or breaks the connection.
// It calls look, to be set by the caller, after each.
func serveStates(t *testing.T, states ...string) (docker *containers.Engine, look *func()) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "docker.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	look = new(func())
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasSuffix(r.URL.Path, "/json") {
				return
			}
			state := states[0]
			states = states[1:]
			defer (*look)()
			if !strings.HasPrefix(state, "{") {
				panic(http.ErrAbortHandler)
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"Config": {}, "State": %s}`, state)
		})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	if docker, err = containers.Open(socket); err != nil {
		t.Fatal(err)
	}
	return docker, look
}

// TestEndedBetween: systemd notes the stop of an Engine after its signal, and a container may have ended by then.
func TestEndedBetween(t *testing.T) {
	stopped := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	back := stopped.Add(3 * time.Second)
	for after, want := range map[time.Duration]bool{
		-time.Second: false, -140 * time.Millisecond: true, 0: true, time.Second: true, 3 * time.Second: true,
		3001 * time.Millisecond: false,
	} {
		if got := endedBetween(stopped.Add(after), stopped, back); got != want {
			t.Errorf("a container that ended %s after the stop of its Engine ended with it: %t", after, got)
		}
	}
}
