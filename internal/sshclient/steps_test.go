package sshclient

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/sshd"
)

// TestSteps: each step has its own limit, and the error says which one took too long.
func TestSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, steps := inSteps(t.Context(), time.Minute)
		defer steps.end()
		for range 3 {
			<-time.After(time.Minute - 1)
			steps.next("it is stuck for %s")
		}
		if ctx.Err() != nil {
			t.Fatalf("ended in time: %v", context.Cause(ctx))
		}
		<-time.After(time.Minute)
		synctest.Wait()
		expect(t, context.Cause(ctx), ErrTimeout, "it is stuck for 1m0s")
	})
}

// TestStuckServer: if a server presents its key and then doesn't complete the login, the error says so, as its address
// is right.
func TestStuckServer(t *testing.T) {
	sshd.Isolate(t)
	offered := make(chan struct{})
	server := sshd.Start(t, sshd.Options{Stuck: offered})
	client := openTo(t, server)
	connect := client.connect
	client.connect = func(ctx context.Context, steps *steps) (*ssh.Client, error) {
		go func() {
			<-offered
			steps.timer.Reset(0)
		}()
		return connect(ctx, steps)
	}
	_, err := client.Hold(t.Context())
	expect(t, err, ErrTimeout, server.Addr, "it answers, but the login took more than 30s", "load")
	if errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error says that the caller's time was over: %v", err)
	}
}
