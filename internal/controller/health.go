package controller

import (
	"context"
	"log/slog"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

const (
	// healthInterval is how often the GPUs of pools are examined.
	healthInterval = 5 * time.Second
	// withoutPools is how often to check without an event whether there are pools.
	withoutPools = time.Minute
)

// watchGPUs records what is wrong with the GPUs of pools. While there are no pools, it only checks
// for some after each change.
func watchGPUs(ctx context.Context, r reconcile.Reconciler, events <-chan struct{}, log *slog.Logger) error {
	logged := faults{}
	for {
		start := time.Now()
		pooled, err := r.KeepPools(ctx)
		if logged.news(everything, err) && err != nil && ctx.Err() == nil {
			log.Error("checking the GPUs of pools failed; trying again", "error", err)
		}
		if pooled || err != nil {
			pause(ctx, time.Until(start.Add(healthInterval)))
			if ctx.Err() != nil {
				return ctx.Err()
			}
			continue
		}
		engine.ResidentPace.Rest(ctx, start)
		if err := engine.Await(ctx, events, time.Now().Add(withoutPools)); err != nil {
			return err
		}
	}
}
