package dockerapi

import (
	"context"
	"fmt"
	"time"
)

// nodeLook is how often is looked whether nodes have become what was asked for.
const nodeLook = 100 * time.Millisecond

// Until looks again and again until it has seen what it waits for. While managers come and go, what fails may succeed
// the next time.
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
				return fmt.Errorf("waiting for %s: %w; the last answer: %w", what, ctx.Err(), last)
			}
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		}
	}
}
