package dockerapi

import (
	"context"
	"fmt"
	"time"
)

// nodeLook is the interval between polls of a condition.
const nodeLook = 100 * time.Millisecond

// Until polls until look reports true. While managers come and go, an error may be gone at the next poll.
func Until(ctx context.Context, what string, look func() (bool, error)) error {
	ticker := time.NewTicker(nodeLook)
	defer ticker.Stop()
	var last error
	for {
		seen, err := look()
		if seen {
			return nil
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			if last != nil {
				return fmt.Errorf("waiting for %s: %w; last error: %w", what, ctx.Err(), last)
			}
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		}
	}
}
