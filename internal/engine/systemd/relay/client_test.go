package relay

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// TestFailureIsRemembered: calls after a failure to connect get it at once, for a while that depends on how long it
// took, within bounds.
func TestFailureIsRemembered(t *testing.T) {
	for took, memory := range map[time.Duration]time.Duration{
		0: time.Second, 5 * time.Second: 10 * time.Second, 2 * time.Minute: 30 * time.Second,
	} {
		t.Run(took.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dials, broken := 0, errors.New("broken")
				client := NewClient("gpu1", func(context.Context) (net.Conn, error) {
					dials++
					<-time.After(took)
					return nil, broken
				})
				expect := func(want int) {
					t.Helper()
					if _, err := client.connect(t.Context()); !errors.Is(err, broken) || dials != want {
						t.Errorf("after %d attempts, want %d: %v", dials, want, err)
					}
				}
				expect(1)
				<-time.After(memory - 1)
				expect(1)
				<-time.After(1)
				expect(2)
			})
		})
	}
}
