package endpoint

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"
)

// engineVersion is the version that the fake engine reports.
const engineVersion = "28.0.0-stand-in"

// answers is the HTTP handler of a minimal Docker Engine: it answers ping and version, and runs one program, which
// echoes its input.
func answers() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/_ping", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Api-Version", "1.44")
		w.Header().Set("Ostype", "linux")
	})
	mux.HandleFunc("GET /v1.44/version", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]string{"Version": engineVersion, "ApiVersion": "1.44"})
	})
	mux.HandleFunc("POST /v1.44/exec/echo/start", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		defer func() { _ = conn.Close() }()
		_, _ = io.WriteString(conn,
			"HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\nContent-Type: application/vnd.docker.raw-stream\r\n\r\n")
		_, _ = io.Copy(conn, buffered)
	})
	return mux
}

// serve serves a handler until the test ends.
func serve(t testing.TB, listener net.Listener, handler http.Handler) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	must(t, server.Listener.Close())
	server.Listener = listener
	// Only the client's side of refused handshakes is tested.
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	t.Cleanup(server.Close)
}

// startEngine starts the fake engine, and returns its socket.
func startEngine(t testing.TB) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "docker.sock")
	serve(t, listen(t, "unix", socket), answers())
	return socket
}

func listen(t testing.TB, network, address string) net.Listener {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(context.Background(), network, address)
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

// open returns a client that is closed with the test.
func open(t testing.TB, address string, credentials Credentials) *client.Client {
	t.Helper()
	e, err := Parse(address)
	must(t, err)
	docker, err := e.Client(credentials)
	must(t, err)
	t.Cleanup(func() { _ = docker.Close() })
	return docker
}

// call makes one call, and returns its error.
func call(t testing.TB, docker *client.Client) error {
	t.Helper()
	version, err := docker.ServerVersion(t.Context())
	if err == nil && version.Version != engineVersion {
		t.Errorf("answered by %q, not by the stand-in", version.Version)
	}
	return err
}

// attach runs the program, and checks that its input comes back, and the end of it.
func attach(t *testing.T, docker *client.Client) {
	t.Helper()
	attached, err := docker.ContainerExecAttach(t.Context(), "echo", container.ExecAttachOptions{})
	must(t, err)
	defer attached.Close()
	_, err = io.WriteString(attached.Conn, "to and fro")
	must(t, err)
	must(t, attached.CloseWrite())
	output, err := io.ReadAll(attached.Reader)
	must(t, err)
	if string(output) != "to and fro" {
		t.Errorf("the program wrote %q", output)
	}
}

// expect checks the kind of an error, and that its text contains each of the parts.
func expect(t *testing.T, err, kind error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", parts)
	}
	if kind != nil && !errors.Is(err, kind) {
		t.Errorf("error is not %q: %v", kind, err)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error lacks %q: %v", part, err)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
