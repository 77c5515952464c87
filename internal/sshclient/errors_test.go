package sshclient

import (
	"errors"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// TestRefused: a host that answers, and can't be logged in to, is told apart from one that doesn't answer.
func TestRefused(t *testing.T) {
	for kind, want := range map[error]bool{
		ErrHostKeyUnknown: true, ErrHostKeyChanged: true, ErrHostKeyRevoked: true, ErrPermissionDenied: true,
		ErrTimeout: false,
	} {
		if got := errors.Is(At("gpu1", Failed(kind, "failed")), engine.ErrRefused); got != want {
			t.Errorf("%v: refused %t, want %t", kind, got, want)
		}
	}
}

func TestConnectFailure(t *testing.T) {
	system := func(errno syscall.Errno) error { return os.NewSyscallError("connect", errno) }
	for name, test := range map[string]struct {
		err, kind error
		part      string
	}{
		"no such name": {err: &net.DNSError{Err: "no such host", Name: "gpu1"}, part: `"gpu1" can't be resolved`},
		"refused": {
			err: system(syscall.ECONNREFUSED), kind: syscall.ECONNREFUSED, part: "gpu1:22 refuses connections",
		},
		"unreachable": {
			err: system(syscall.EHOSTUNREACH), kind: syscall.EHOSTUNREACH,
			part: "gpu1:22 can't be reached: no route to host",
		},
		"anything else": {err: errors.New("no luck"), part: "gpu1:22 can't be reached: no luck"},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, connectFailure("gpu1:22", &net.OpError{Op: "dial", Net: "tcp", Err: test.err}), test.kind,
				test.part)
		})
	}
}
