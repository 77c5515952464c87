package report

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/explain"
	"github.com/trainyard/terraform-provider-trainyard/internal/overview"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

const (
	// window is the time over which means and peaks of usage are computed.
	window = 10 * time.Minute
	// logLines is the number of log lines shown for each failed member, mostLogs the maximum number of such members,
	// and logsAtOnce how many of their logs are read in parallel.
	logLines, mostLogs, logsAtOnce = 20, 50, 8
	// mostLog limits the log lines of one member, in bytes.
	mostLog = 16 << 10
	// decisions is the number of entries shown of each policy's history.
	decisions = 20
)

// reading is everything that a report is made from.
type reading struct {
	overview.Reading
	name string
	// gpus are the GPUs by host; pools say which of them groups may use.
	gpus     map[string]domain.HostGPUs
	pools    map[string]domain.GPUPoolDocument
	progress map[string]domain.Progress
	// logs are the last lines of failed members' logs, or why they can't be read.
	logs map[string][]string
	// policies are the texts about policies, by key.
	policies map[string]string
	sweeps   map[string]reconcile.Sweep
	// waits says, by sweep, why none of its runs starts.
	waits map[string]string
}

// read reads a cluster through a snapshot of its engine.
func read(ctx context.Context, name string, e engine.Engine) (reading, error) {
	source := overview.Source{Snapshot: func() overview.Cluster { return e }, Window: window}
	r := reading{name: name, progress: map[string]domain.Progress{}, policies: map[string]string{}, sweeps: map[string]reconcile.Sweep{}}
	var err error
	if r.Reading, err = source.Read(ctx); err != nil {
		return r, err
	}
	if r.gpus, err = e.GPUs(ctx); err != nil {
		return r, err
	}
	if r.pools, err = engine.List[domain.GPUPoolDocument](ctx, e); err != nil {
		return r, err
	}
	reconciler := reconcile.Reconciler{Engine: e}
	for group := range r.Groups {
		found, err := reconciler.Read(ctx, group)
		if errors.Is(err, engine.ErrNotFound) {
			continue // destroyed in the meantime
		}
		if err != nil {
			return r, err
		}
		r.progress[group] = found.Progress
	}
	for key, policy := range r.Policies {
		text, err := explain.Text(ctx, name, e, policy.Spec.Group, policy.Spec.Role, decisions, r.At)
		if err != nil {
			text += "\n" + err.Error()
		}
		r.policies[key] = text
	}
	if err := r.readSweeps(ctx, reconciler); err != nil {
		return r, err
	}
	r.logs = readLogs(ctx, e, r.failed())
	return r, nil
}

func (r *reading) readSweeps(ctx context.Context, reconciler reconcile.Reconciler) error {
	documents, err := engine.List[domain.SweepDocument](ctx, reconciler.Engine)
	if err != nil || len(documents) == 0 {
		return err
	}
	for name := range documents {
		found, err := reconciler.SweepRuns(ctx, name)
		if errors.Is(err, engine.ErrNotFound) {
			continue // destroyed in the meantime
		}
		if err != nil {
			return err
		}
		r.sweeps[name] = found
	}
	r.waits, err = reconciler.SweepOutlook(ctx)
	return err
}

// failed returns the members whose logs may say what went wrong, those that don't run first.
func (r *reading) failed() []string {
	var down, up []string
	for _, o := range r.Observed {
		switch {
		case o.State == domain.StateFailed || o.State == domain.StateRestarting:
			down = append(down, o.Name)
		case o.LastError != "":
			up = append(up, o.Name)
		}
	}
	down = append(down, up...)
	return down[:min(len(down), mostLogs)]
}

// readLogs returns the last log lines of members. If a log can't be read, the error takes the place of its lines.
func readLogs(ctx context.Context, e engine.Telemetry, members []string) map[string][]string {
	logs := make([][]string, len(members))
	var group errgroup.Group
	group.SetLimit(logsAtOnce)
	for i, member := range members {
		group.Go(func() error {
			lines, err := e.Logs(ctx, member, engine.LogOptions{Tail: logLines, Most: mostLog})
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
