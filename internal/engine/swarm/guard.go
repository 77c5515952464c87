package swarm

import (
	"context"
	"errors"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/members"
)

// Guard restarts ended indexed members by their rules until ctx is done: the Swarm's own restart policy has no final
// exit codes and no back-off. It also moves members with hosts that became other nodes, and replaces the agents' key.
func (e *Engine) Guard(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, err := e.Watch(ctx)
	if err != nil {
		return err
	}
	seen := members.Ends{}
	for {
		start := time.Now()
		next, err := e.guardOnce(ctx, seen)
		if err != nil {
			return err
		}
		engine.ResidentPace.Rest(ctx, start)
		if err := engine.Await(ctx, events, next); err != nil {
			return err
		}
	}
}

// guardOnce does what is due now, and returns when to call it next. It reads each list once.
func (e *Engine) guardOnce(ctx context.Context, seen members.Ends) (next time.Time, err error) {
	once := e.snapshot()
	if err := errors.Join(once.KeepOff(ctx), once.FollowHosts(ctx)); err != nil {
		return next, err
	}
	next, err = once.RestartDue(ctx, seen)
	return next, errors.Join(err, once.KeepKeys(ctx))
}
