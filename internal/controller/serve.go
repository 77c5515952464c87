package controller

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
)

// serve answers at an address until ctx is done. An address that can't be had is tried again.
func serve(ctx context.Context, address string, answer http.Handler, log *slog.Logger) {
	for ctx.Err() == nil {
		listener, err := telemetry.ListenWithin(address)
		if err == nil {
			err = bounded.Serve(ctx, listener, answer)
		}
		if err != nil {
			const complaint = "Prometheus can't be told of members and autoscaling policies; trying again"
			log.Error(complaint, "address", address, "error", err)
		}
		pause(ctx, afterFault)
	}
}
