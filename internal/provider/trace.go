package provider

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-log/tflog"
)

// trace logs a call to an engine, with the time it took. What is passed in a call is not logged: it may hold secrets.
func trace(ctx context.Context, call string, do func() error) error {
	start := time.Now()
	err := do()
	fields := map[string]any{"call": call, "duration": time.Since(start).String()}
	if err != nil {
		fields["error"] = err.Error()
	}
	tflog.Debug(ctx, "engine call", fields)
	return err
}
