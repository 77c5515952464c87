package main

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// startShards serves the initial parameters on this many parameter servers. wrap can wrap each handler.
func startShards(t *testing.T, count int, wrap func(http.Handler) http.Handler) []string {
	t.Helper()
	var addresses []string
	for index := range count {
		held := newParameterServer(shardOf(parameterCount, index, count), options{seed: 5, learningRate: 0.5})
		server := httptest.NewServer(wrap(held.handler()))
		t.Cleanup(server.Close)
		addresses = append(addresses, server.Listener.Addr().String())
	}
	return addresses
}

func unchanged(h http.Handler) http.Handler { return h }

func newTestClient(t *testing.T, servers []string, patience time.Duration, logged io.Writer) *parameterClient {
	t.Helper()
	client := newParameterClient(servers, patience, newLogger(logged))
	t.Cleanup(client.close)
	return client
}

func TestPushMovesEachShardAgainstTheGradient(t *testing.T) {
	for _, servers := range []int{1, 2, 3} {
		client := newTestClient(t, startShards(t, servers, unchanged), time.Minute, io.Discard)
		before, gradient, after := make([]float64, parameterCount), make([]float64, parameterCount),
			make([]float64, parameterCount)
		if err := client.pull(t.Context(), before); err != nil {
			t.Fatal(err)
		}
		if want := initialParameters(5); !slices.Equal(before, want) {
			t.Errorf("%d servers: the first pull is not the initial parameters", servers)
		}
		for i := range gradient {
			gradient[i] = float64(i)
		}
		if err := client.push(t.Context(), gradient); err != nil {
			t.Fatal(err)
		}
		if err := client.pull(t.Context(), after); err != nil {
			t.Fatal(err)
		}
		for i := range after {
			if want := before[i] - 0.5*gradient[i]; after[i] != want {
				t.Fatalf("%d servers: parameter %d is %g after the push, want %g", servers, i, after[i], want)
			}
		}
	}
}

func TestClientWaitsForAServerThatIsNotThereYet(t *testing.T) {
	faults := map[string]func(http.ResponseWriter){
		"connection lost": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"unavailable":     func(w http.ResponseWriter) { http.Error(w, "starting", http.StatusServiceUnavailable) },
		"answer cut short": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write(make([]byte, 10))
		},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int32
			flaky := func(h http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if requests.Add(1) <= 3 {
						fault(w)
						return
					}
					h.ServeHTTP(w, r)
				})
			}
			var logged strings.Builder
			client := newTestClient(t, startShards(t, 1, flaky), time.Minute, &logged)
			parameters := make([]float64, parameterCount)
			if err := client.pull(t.Context(), parameters); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(parameters, initialParameters(5)) {
				t.Error("the pull after the outage is not the parameters")
			}
			lines := strings.Split(strings.TrimSpace(logged.String()), "\n")
			if len(lines) != 2 || !strings.Contains(lines[0], `"event":"waiting"`) ||
				!strings.Contains(lines[1], `"event":"connected"`) {
				t.Errorf("an outage of several attempts logged\n%s", logged.String())
			}
		})
	}
}

func TestClientGivesUpOnAServerThatNeverComes(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	client := newParameterClient([]string{address}, time.Nanosecond, slog.New(slog.DiscardHandler))
	err = client.pull(t.Context(), make([]float64, parameterCount))
	if err == nil || !strings.Contains(err.Error(), "parameter server 0 ("+address+") was out of reach for 1ns") {
		t.Errorf("error %v", err)
	}
}

func TestShardsOfAnotherClusterAreRefusedAtOnce(t *testing.T) {
	servers := startShards(t, 2, unchanged)
	client := newTestClient(t, servers[:1], time.Hour, io.Discard) // expects one server; there are two
	vector := make([]float64, parameterCount)
	for name, err := range map[string]error{
		"pull": client.pull(t.Context(), vector),
		"push": client.push(t.Context(), vector),
	} {
		if err == nil || !strings.Contains(err.Error(), "do all members have the same cluster in TF_CONFIG?") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
