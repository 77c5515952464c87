package metrics

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
)

// serveAgain is how soon an address is tried again that can't be had.
const serveAgain = 2 * time.Second

// Serve answers at an address, see [telemetry.ListenWithin], until ctx is done. One that can't be had is tried again:
// whoever serves has more to do, and goes on with it. Each reason is logged once in a row.
func Serve(ctx context.Context, address string, answer http.Handler, log *slog.Logger) {
	told := ""
	for ctx.Err() == nil {
		listener, err := telemetry.ListenWithin(address)
		if err == nil {
			told = ""
			err = bounded.Serve(ctx, listener, answer)
		}
		if err != nil && err.Error() != told {
			told = err.Error()
			log.Error("Prometheus is not answered; trying again", "address", address, "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(serveAgain):
		}
	}
}
