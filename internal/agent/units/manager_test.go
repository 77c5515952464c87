//go:build linux

package units

import (
	"context"
	"net"
	"path/filepath"
	"testing"
)

// TestSilentBus: cancelling a call ends the wait for a bus that accepts connections and never answers.
func TestSilentBus(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "bus")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path="+socket)
	ctx, giveUp := context.WithCancel(t.Context())
	go func() {
		for {
			silent, err := listener.Accept()
			if err != nil {
				return // the test is over
			}
			t.Cleanup(func() { _ = silent.Close() })
			giveUp()
		}
	}()
	t.Cleanup(func() { _ = listener.Close() })
	if traffic, err := (&Manager{}).Traffic(ctx); err == nil {
		t.Errorf("it returned %v", traffic)
	}
}
