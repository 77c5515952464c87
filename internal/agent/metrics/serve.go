package metrics

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
)

// serveAgain is the interval between attempts to listen on an unavailable address.
const serveAgain = 2 * time.Second

// Serve serves at an address, see [telemetry.ListenWithin], until ctx is done. If the address is unavailable it retries
// rather than fails, as the process has other work to do. Consecutive identical errors are logged once.
func Serve(ctx context.Context, address string, answer http.Handler, log *slog.Logger) {
	logged := ""
	for ctx.Err() == nil {
		listener, err := telemetry.ListenWithin(address)
		if err == nil {
			logged = ""
			err = bounded.Serve(ctx, listener, answer)
		}
		if err != nil && err.Error() != logged {
			logged = err.Error()
			log.Error("can't serve Prometheus metrics; retrying", "address", address, "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(serveAgain):
		}
	}
}
