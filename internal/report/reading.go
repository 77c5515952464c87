package report

import (
	"context"
	"errors"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/explain"
	"github.com/trainyard/terraform-provider-trainyard/internal/overview"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

const (
	// window is the time over which means and peaks of usage are computed.
	window = 10 * time.Minute
	// logLines is the number of log lines shown for each failed member, and mostLogs the maximum number of such
	// members.
	logLines, mostLogs = 20, 50
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
	sweeps   overview.Sweeps
}

// read reads a cluster through a snapshot of its engine.
func read(ctx context.Context, name string, e engine.Engine) (reading, error) {
	source := overview.Source{Snapshot: func() overview.Cluster { return e }, Window: window}
	r := reading{name: name, progress: map[string]domain.Progress{}, policies: map[string]string{}}
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
	if r.sweeps, err = overview.ReadSweeps(ctx, e); err != nil {
		return r, err
	}
	r.logs = overview.ReadLogs(ctx, e, r.failed(), engine.LogOptions{Tail: logLines, Most: mostLog})
	return r, nil
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
