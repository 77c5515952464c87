package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

const (
	// residentLook is how often the controller and the agents are checked without an event.
	residentLook = 2 * time.Second
	// failingPatience is how long they may fail before the wait ends. A host that can run them may still be starting.
	failingPatience = time.Minute
)

// AwaitResidents waits until the controller and all agents run. If one keeps failing, its error ends the wait; the
// engine keeps retrying it.
func (r Reconciler) AwaitResidents(ctx context.Context) (residents domain.Residents, err error) {
	var silent, failing time.Time // since when the engine has not answered, and since when they have failed
	var unanswered error
	look := func() (done bool, err error) {
		if residents, err = r.Engine.Residents(ctx); err != nil {
			return false, err
		}
		silent, unanswered = time.Time{}, nil
		hopeless := residents.Hopeless()
		switch trouble := residents.Failing(); {
		case len(trouble) == 0:
			failing = time.Time{}
		case failing.IsZero():
			failing = time.Now()
		case time.Since(failing) > failingPatience:
			hopeless = trouble
		}
		if len(hopeless) > 0 {
			return false, errors.New(strings.Join(hopeless, "\n\n"))
		}
		return len(residents.Awaited()) == 0, nil
	}
	for {
		err := r.eventually(ctx, look)
		switch {
		case err == nil:
			return residents, nil
		case ctx.Err() != nil:
			awaited := residents.Awaited()
			if unanswered != nil {
				awaited = append(awaited, unanswered.Error())
			}
			return residents, fmt.Errorf("%s: %w", strings.Join(awaited, "\n\n"), context.Cause(ctx))
		case !Passes(err):
			return residents, err
		case silent.IsZero():
			silent = time.Now()
		case time.Since(silent) > engine.OutagePatience:
			return residents, fmt.Errorf("for %s: %w", engine.OutagePatience, err)
		}
		unanswered = err
		_ = pause(ctx, outageRetry) // the next look notices the end of ctx
	}
}

// eventually calls look now and after each event of the engine, until it reports done.
func (r Reconciler) eventually(ctx context.Context, look func() (done bool, err error)) error {
	if done, err := look(); done || err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, err := r.Engine.Watch(ctx)
	if err != nil {
		return err
	}
	for {
		start := time.Now()
		if done, err := look(); done || err != nil {
			return err
		}
		engine.WaitPace.Rest(ctx, start)
		if err := engine.Await(ctx, events, time.Now().Add(residentLook)); err != nil {
			return err
		}
	}
}
