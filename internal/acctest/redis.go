package acctest

import (
	"io"
	"net"
	"os/exec"
	"strings"
	"testing"
)

// StartRedis runs a real Redis, without persistence, until the end of the test. It returns the address once Redis
// answers.
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
		return exec.Command(program, "--bind", host, "--port", port, "--dir", t.TempDir(), "--save", "", "--appendonly",
			"no", "--daemonize", "no")
	}, pings)
}

// AskRedis runs a Redis command and returns the reply; multiple values are on a line each.
func AskRedis(t testing.TB, address string, command ...string) string {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := exec.Command("redis-cli", append([]string{"-e", "-h", host, "-p", port},
		command...)...).CombinedOutput() // from the same package as the server
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
