package sshclient

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/sshd"
)

// startEcho returns a socket that echoes what it receives.
func startEcho(t testing.TB) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "echo.sock")
	serve(listen(t, "unix", socket), func(conn net.Conn) { _, _ = io.Copy(conn, conn) })
	return socket
}

func listen(t testing.TB, network, address string) net.Listener {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(context.Background(), network, address)
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

// serve passes each connection to handle, and closes it afterwards.
func serve(listener net.Listener, handle func(net.Conn)) {
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				handle(conn)
			}()
		}
	}()
}

// clientOf returns a client of the host at an address.
func clientOf(t testing.TB, address string, credentials Credentials) *Client {
	t.Helper()
	host, err := ParseHost(address)
	must(t, err)
	client, err := New(host, credentials, 0)
	must(t, err)
	return client
}

// openTo returns a client of a server with valid credentials.
func openTo(t testing.TB, server *sshd.Server) *Client {
	t.Helper()
	return clientOf(t, server.Addr, server.Credentials(t))
}

// echo sends something to a socket, followed by the end of input, and checks the reply. It returns the error of Dial.
func echo(t testing.TB, client *Client, network, address string) error {
	t.Helper()
	conn, err := client.Dial(t.Context(), network, address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "to and fro"); err != nil {
		t.Error(err)
	}
	if half, ok := conn.(interface{ CloseWrite() error }); !ok || half.CloseWrite() != nil {
		t.Error("the end of the input can't be signalled")
	}
	if received, err := io.ReadAll(conn); err != nil || string(received) != "to and fro" {
		t.Errorf("%q came back (%v)", received, err)
	}
	return nil
}

// write writes a file with its parent directories, and returns its path.
func write(t testing.TB, content string, path ...string) string {
	t.Helper()
	file := filepath.Join(path...)
	must(t, os.MkdirAll(filepath.Dir(file), 0o700))
	must(t, os.WriteFile(file, []byte(content), 0o600))
	return file
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
