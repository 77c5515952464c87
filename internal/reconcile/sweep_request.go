package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// requestLook is how often to check without an event whether the controller has handled a request.
const requestLook = 5 * time.Second

// OthersError means that the sweep belongs to somebody else.
type OthersError struct{ Sweep, By, Who string }

// Error names both.
func (e *OthersError) Error() string {
	return fmt.Sprintf("sweep %q was created by %s, and you are %s: repeat with --force if you mean it", e.Sweep, e.By,
		e.Who)
}

// RequestRuns asks the controller to do something with runs of a sweep, and returns once it has. A sweep of
// somebody else needs force.
func (r Reconciler) RequestRuns(
	ctx context.Context, name string, keys []string, wish domain.RunWish, force bool,
) error {
	found, err := r.SweepRuns(ctx, name)
	if err != nil {
		return err
	}
	if by := found.Document.By; by != who() && !force {
		return &OthersError{name, by, who()}
	}
	for _, key := range keys {
		if _, there := found.Spec.Runs[key]; !there {
			return fmt.Errorf("sweep %q has no run %q", name, key)
		}
		if wish == domain.WishPause && !r.Engine.Traits().Supports.Pause && found.Runs[key].State == domain.RunRunning {
			return fmt.Errorf(
				"run %q of sweep %q is running, and engine %q can't halt members: pause waiting runs, or "+
					"cancel this one",
				key, name, r.Engine.Traits().Name,
			)
		}
	}
	for _, key := range keys {
		if err := r.request(ctx,
			domain.SweepRequest{Sweep: name, Run: key, ID: found.Document.ID, Want: wish, By: who()}); err != nil {
			return err
		}
	}
	return r.awaitRequests(ctx, name, keys)
}

// request stores a request, replacing an earlier one that has not been handled yet.
func (r Reconciler) request(ctx context.Context, request domain.SweepRequest) error {
	for {
		_, err := engine.Put(ctx, r.Engine, request)
		if !errors.Is(err, engine.ErrConflict) {
			return err
		}
		former, err := engine.Get[domain.SweepRequest](ctx, r.Engine, request.Key())
		if err != nil && !errors.Is(err, engine.ErrNotFound) {
			return err
		}
		request.Revision = former.Revision
	}
}

// awaitRequests returns once the controller has handled the requests for these runs.
func (r Reconciler) awaitRequests(ctx context.Context, name string, keys []string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, err := r.Engine.Watch(ctx)
	if err != nil {
		return err
	}
	for {
		left, err := engine.List[domain.SweepRequest](ctx, r.Engine)
		if err != nil {
			return err
		}
		waits := false
		for _, key := range keys {
			_, there := left[(&domain.SweepRequest{Sweep: name, Run: key}).Key()]
			waits = waits || there
		}
		if !waits {
			return nil
		}
		if err := engine.Await(ctx, events, time.Now().Add(requestLook)); err != nil {
			return fmt.Errorf("the controller has not carried it out yet: %w", err)
		}
	}
}
