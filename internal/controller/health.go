package controller

import (
	"context"
	"log/slog"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

const (
	// healthInterval is how often the GPUs of pools are looked at.
	healthInterval = 5 * time.Second
	// withoutPools is how soon it is looked whether there are pools when nothing happens.
	withoutPools = time.Minute
)

// watchGPUs notes what is wrong with the GPUs of pools, again and again. Where there are no pools, it only looks for
// them after a change.
func watchGPUs(ctx context.Context, r reconcile.Reconciler, events <-chan struct{}, log *slog.Logger) error {
	told := faults{}
	for {
		start := time.Now()
		pooled, err := r.KeepPools(ctx)
		if told.news(everything, err) && err != nil && ctx.Err() == nil {
			log.Error("the GPUs of pools can't be looked at; trying again", "error", err)
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
