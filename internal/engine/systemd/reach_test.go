package systemd

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/relay"
	"github.com/trainyard/terraform-provider-trainyard/internal/sshclient"
)

// TestSilentRelay: a host whose SSH server answers, and whose commands hang, is unreachable, even if nobody ends the
// attempt.
func TestSilentRelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		dial := greeted(func(context.Context) (net.Conn, error) { return ours, nil })
		conn, err := dial(context.Background())
		if conn != nil || !errors.Is(err, engine.ErrUnreachable) || !errors.Is(err, sshclient.ErrTimeout) {
			t.Errorf("got %v, %v", conn, err)
		}
		if _, err := theirs.Write([]byte(relay.Greeting)); err == nil {
			t.Error("the connection is left open")
		}
	})
}

// TestGreetedStaysOpen: the limit applies to the greeting only.
func TestGreetedStaysOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		go func() { _, _ = theirs.Write([]byte(relay.Greeting + "more")) }()
		conn, err := greeted(func(context.Context) (net.Conn, error) { return ours, nil })(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		limited, cancel := context.WithTimeout(context.Background(), 2*greetingPatience)
		defer cancel()
		<-limited.Done()
		got := make([]byte, 4)
		if _, err := conn.Read(got); err != nil || string(got) != "more" {
			t.Errorf("read %q, %v", got, err)
		}
	})
}

// TestSlowRelay: a host may take more than a minute to start the relay, as with a slow sudo.
func TestSlowRelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		time.AfterFunc(90*time.Second, func() { _, _ = theirs.Write([]byte(relay.Greeting)) })
		conn, err := greeted(func(context.Context) (net.Conn, error) { return ours, nil })(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
	})
}

// TestInstallationHangs: an installation ends, even if nobody ends the attempt, and says what to check.
func TestInstallationHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial := installing(
			func(context.Context) (net.Conn, error) { return nil, errOther },
			func(ctx context.Context) error {
				select {
				case <-ctx.Done():
					return context.Cause(ctx)
				case <-time.After(2 * installPatience):
					return errors.New("it has no limit")
				}
			})
		if conn, err := dial(context.Background()); conn != nil || !errors.Is(err, errInstall) {
			t.Errorf("got %v, %v", conn, err)
		}
	})
}
