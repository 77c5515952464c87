package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// The protocol between workers and parameter servers: a shard is sent as its float64s, little-endian.
const (
	parametersPath = "/parameters" // GET: the current shard
	gradientPath   = "/gradient"   // POST: applied at once
	float64Bytes   = 8
	stopTimeout    = 3 * time.Second
)

// parameterServer holds a shard of the parameters and applies gradients to it as they arrive, from any worker:
// asynchronous stochastic gradient descent.
type parameterServer struct {
	learningRate float64

	mu         sync.RWMutex
	parameters []float64
	updates    int // gradients applied
}

// newParameterServer returns a server with the initial values of a shard.
func newParameterServer(held shard, opts options) *parameterServer {
	return &parameterServer{
		learningRate: opts.learningRate,
		parameters:   slices.Clone(initialParameters(opts.seed)[held.low:held.high]),
	}
}

func (s *parameterServer) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+parametersPath, s.pull)
	mux.HandleFunc("POST "+gradientPath, s.push)
	return mux
}

func (s *parameterServer) pull(w http.ResponseWriter, _ *http.Request) {
	s.mu.RLock()
	body := encodeVector(s.parameters)
	s.mu.RUnlock()
	_, _ = w.Write(body) // a worker that went away asks again
}

func (s *parameterServer) push(w http.ResponseWriter, r *http.Request) {
	gradient := make([]float64, len(s.parameters)) // the length never changes
	if err := readVector(r.Body, gradient); err != nil {
		http.Error(w, "gradient: "+err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	addScaled(s.parameters, -s.learningRate, gradient)
	s.updates++
	s.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
}

func (s *parameterServer) updateCount() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.updates
}

// serve serves workers until ctx ends, and then finishes the requests in progress.
func serve(ctx context.Context, listener net.Listener, s *parameterServer, log *slog.Logger) error {
	server := &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	log.Info("serving", "address", listener.Addr().String(), "parameters", len(s.parameters))

	select {
	case err := <-failed:
		return fmt.Errorf("cannot go on serving parameters: %w", err)
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err := server.Shutdown(stopping); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("cannot stop serving parameters: %w", err)
	}
	log.Info("stopped", "updates", s.updateCount())
	return nil
}

func encodeVector(vector []float64) []byte {
	body := make([]byte, float64Bytes*len(vector))
	if _, err := binary.Encode(body, binary.LittleEndian, vector); err != nil {
		panic(err) // the buffer is as large as the vector
	}
	return body
}

// readVector fills vector from r, which must contain exactly as many numbers.
func readVector(r io.Reader, vector []float64) error {
	want := float64Bytes * len(vector)
	body, err := io.ReadAll(io.LimitReader(r, int64(want)+1))
	if err != nil {
		return err
	}
	if len(body) != want {
		return &sizeError{got: len(body), want: want}
	}
	_, err = binary.Decode(body, binary.LittleEndian, vector)
	return err
}

// sizeError says that a peer shards the parameters differently.
type sizeError struct{ got, want int }

func (e *sizeError) Error() string {
	if e.got > e.want {
		return fmt.Sprintf("more than the %d bytes of this shard: do all members have the same cluster in TF_CONFIG?",
			e.want)
	}
	return fmt.Sprintf("%d bytes where this shard has %d: do all members have the same cluster in TF_CONFIG?", e.got,
		e.want)
}
