package relay

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// breaking returns a client whose first connection breaks during the first answer, and a counter of calls.
func breaking(t *testing.T) (*Client, *atomic.Int64) {
	t.Helper()
	calls := new(atomic.Int64)
	connections := 0
	return NewClient("gpu1", func(context.Context) (net.Conn, error) {
		connections++
		first := connections == 1
		ours, theirs := net.Pipe()
		mux := http.NewServeMux()
		for _, name := range []string{"again", "once"} {
			(Call[None, int]{name: name}).Answer(mux, func(context.Context, string, None) (int, error) {
				count := int(calls.Add(1))
				if first {
					_ = theirs.Close()
				}
				return count, nil
			})
		}
		go func() { _ = Serve(t.Context(), theirs, mux) }()
		return ours, nil
	}), calls
}

// TestConnectionBreaks: a call is repeated, unless it may have been carried out.
func TestConnectionBreaks(t *testing.T) {
	client, calls := breaking(t)
	if answer, err := (Call[None, int]{name: "again"}).Ask(t.Context(), client, "lab", None{}); err != nil ||
		answer != 2 {
		t.Errorf("the answer is %d (%v), after %d calls", answer, err, calls.Load())
	}
	client, calls = breaking(t)
	if _, err := (Call[None, int]{name: "once", once: true}).Ask(t.Context(), client, "lab",
		None{}); !errors.Is(err, engine.ErrUnreachable) || calls.Load() != 1 {
		t.Errorf("the error is %v, after %d calls", err, calls.Load())
	}
}

// TestRequestsAreLogged: each request is logged with its host and call, but without its content.
func TestRequestsAreLogged(t *testing.T) {
	client, _ := breaking(t)
	var log bytes.Buffer
	client.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if _, err := (Call[None, int]{name: "again"}).Ask(t.Context(), client, "lab", None{}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(log.String(), `msg="host call" host=gpu1 call=again duration=`); got != 2 {
		t.Errorf("of two requests, %d are in the log:\n%s", got, log.String())
	}
}
