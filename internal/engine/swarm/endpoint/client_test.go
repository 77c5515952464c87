package endpoint

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docker/docker/client"

	"github.com/trainyard/terraform-provider-trainyard/internal/sshclient"
)

func TestUnix(t *testing.T) {
	socket := startEngine(t)
	docker := open(t, "unix://"+socket, Credentials{})
	must(t, call(t, docker))
	if got := docker.ClientVersion(); got != "1.44" {
		t.Errorf("the client speaks version %s of the API, and the engine 1.44", got)
	}
	attach(t, docker)
}

func TestUnixFailures(t *testing.T) {
	folder := t.TempDir()
	absent := filepath.Join(folder, "absent.sock")
	expect(t, call(t, open(t, "unix://"+absent, Credentials{})), ErrNoSocket, "unix://"+absent, "check the path")

	left := filepath.Join(folder, "left.sock")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: left, Net: "unix"})
	must(t, err)
	listener.SetUnlinkOnClose(false)
	must(t, listener.Close())
	err = call(t, open(t, "unix://"+left, Credentials{}))
	expect(t, err, syscall.ECONNREFUSED, "unix://"+left, "refuses connections")
	if !client.IsErrConnectionFailed(err) {
		t.Errorf("not a failure to connect to the Docker client: %v", err)
	}
}

// TestNoPipe: opening a missing pipe, as everywhere except on Windows, fails with an error that says so.
func TestNoPipe(t *testing.T) {
	const address = "npipe:////./pipe/trainyard-test-absent"
	err := call(t, open(t, address, Credentials{}))
	if err == nil || !strings.Contains(err.Error(), address) || !strings.Contains(err.Error(), "pipe") {
		t.Errorf("the error is %v", err)
	}
	if runtime.GOOS != "windows" {
		expect(t, err, nil, "named pipes exist only on Windows")
	}
}

func TestPermissionFailure(t *testing.T) {
	err := socketFailure("/run/docker.sock",
		&net.OpError{Op: "dial", Net: "unix", Err: os.NewSyscallError("connect", syscall.EACCES)})
	expect(t, err, sshclient.ErrPermissionDenied, "/run/docker.sock", "group")
}

func TestHoldFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		var answer error = sshclient.Failed(sshclient.ErrTimeout, "first")
		dial := holdFailure(func(context.Context) (net.Conn, error) {
			attempts++
			return nil, answer
		}, time.Second)
		ask := func(want error, attempt int) {
			t.Helper()
			if _, err := dial(t.Context()); !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
			if attempts != attempt {
				t.Errorf("%d attempts to connect, want %d", attempts, attempt)
			}
		}
		ask(sshclient.ErrTimeout, 1)
		answer = context.Canceled
		ask(sshclient.ErrTimeout, 1) // still the first
		<-time.After(time.Second)
		ask(context.Canceled, 2)
		ask(context.Canceled, 3) // a cancelled call says nothing about the next
	})
}
