package acctest

import (
	"io"
	"net"
	"os/exec"
	"strings"
	"testing"
)

// StartRedis runs a real Redis until the end of the test, and returns its address once it answers. It keeps nothing.
func StartRedis(t testing.TB) string {
	t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatal("there is no Redis on this machine: install Debian's package redis-server")
	}
	return serve(t, "Redis", func(address string) *exec.Cmd {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			t.Fatal(err)
		}
		return exec.Command(program, "--bind", host, "--port", port, "--dir", t.TempDir(), "--save", "", "--appendonly", "no", "--daemonize", "no")
	}, pings)
}

// AskRedis has a Redis carry out a command, and returns its answer, a line each where there are several.
func AskRedis(t testing.TB, address string, command ...string) string {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := exec.Command("redis-cli", append([]string{"-e", "-h", host, "-p", port}, command...)...).CombinedOutput() // of the package of the server
	if err != nil {
		t.Fatalf("redis-cli %s: %v\n%s", strings.Join(command, " "), err, answer)
	}
	return strings.TrimSpace(string(answer))
}

// pings reports whether a Redis answers at an address.
func pings(address string) bool {
	connection, err := net.Dial("tcp", address)
	if err != nil {
		return false
	}
	defer connection.Close()
	if _, err := io.WriteString(connection, "PING\r\n"); err != nil {
		return false
	}
	answer := make([]byte, len("+PONG"))
	_, err = io.ReadFull(connection, answer)
	return err == nil && string(answer) == "+PONG"
}
