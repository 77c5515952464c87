package dockerapi

import (
	"context"
	"fmt"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// nodeLook is the least pause between polls of a condition.
const nodeLook = 100 * time.Millisecond

// Until polls until look reports true. While managers come and go, an error may be gone at the next poll.
func Until(ctx context.Context, what string, look func() (bool, error)) error {
	var last error
	for {
		began := time.Now()
		seen, err := look()
		if seen {
			return nil
		}
		if ctx.Err() == nil {
			last = err
		}
		rest := time.NewTimer(max(nodeLook, engine.WaitPace.After(time.Since(began))))
		select {
		case <-rest.C:
		case <-ctx.Done():
			rest.Stop()
			if last != nil {
				return fmt.Errorf("waiting for %s: %w; last error: %w", what, ctx.Err(), last)
			}
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		}
	}
}
