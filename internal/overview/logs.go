package overview

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// logsAtOnce is how many logs are read in parallel.
const logsAtOnce = 8

// ReadLogs returns the log lines of members. If a log can't be read, the error takes the place of its lines.
func ReadLogs(
	ctx context.Context, e engine.Telemetry, members []string, options engine.LogOptions,
) map[string][]string {
	logs := make([][]string, len(members))
	var group errgroup.Group
	group.SetLimit(logsAtOnce)
	for i, member := range members {
		group.Go(func() error {
			lines, err := e.Logs(ctx, member, options)
			if err != nil {
				lines = []string{err.Error()}
			}
			logs[i] = lines
			return nil
		})
	}
	_ = group.Wait()
	byName := map[string][]string{}
	for i, member := range members {
		byName[member] = logs[i]
	}
	return byName
}
