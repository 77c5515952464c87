package enginetest

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

func testLocks(t *testing.T, h Harness) {
	e := h.cluster(t)
	ctx := t.Context()
	holder := engine.Holder{Who: "ada@engine", Process: os.Getpid(), Operation: "apply of group job"}
	release, err := e.Lock(ctx, "group job", holder)
	must(t, err)
	_, err = e.Lock(ctx, "group job", engine.Holder{Who: "bob"})
	var locked *engine.LockedError
	if !errors.As(err, &locked) || locked.Holder.Who != holder.Who || locked.Holder.Process != holder.Process {
		t.Errorf("a lock that is held: %v", err)
	}
	other, err := e.Lock(ctx, "group other", engine.Holder{Who: "bob"})
	must(t, err)
	must(t, other())
	must(t, release())

	// A holder that holds a lock for long notices when it no longer has it.
	held, release, err := e.Hold(ctx, "group job", holder)
	must(t, err)
	_, err = e.Lock(ctx, "group job", engine.Holder{Who: "bob"})
	if !errors.As(err, &locked) || held.Err() != nil {
		t.Errorf("a lock that is held: %v; what its holder does: %v", err, context.Cause(held))
	}
	must(t, release())
	if held.Err() == nil {
		t.Error("what the holder of a lock does goes on after its release")
	}
	again, err := e.Lock(ctx, "group job", engine.Holder{Who: "bob"})
	must(t, err)
	must(t, again())
}
