package controller

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/metrics"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

const (
	// rosterPatience bounds how long an engine may take to list running members, as scrapers time out as well.
	rosterPatience = 5 * time.Second
	// rosterKept is how long an answer is reused, as every member of the cluster's network may ask.
	rosterKept = time.Second
)

// roster lists running members. It is safe for concurrent use.
type roster struct {
	life    context.Context //nolint:containedctx // the controller's: concurrent scrapes share an answer
	engine  engine.Engine
	cluster string
	log     *slog.Logger

	mu      sync.Mutex
	known   []metrics.MemberInfo
	learned time.Time
	logged  faults
}

func newRoster(life context.Context, e engine.Engine, cluster string, log *slog.Logger) *roster {
	return &roster{life: life, engine: e, cluster: cluster, log: log, logged: faults{}}
}

// running returns the running members; none if the engine fails.
func (r *roster) running() []metrics.MemberInfo {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.learned) < rosterKept {
		return r.known
	}
	known, err := r.ask()
	if r.logged.news(everything, err) && err != nil {
		r.log.Error("listing running members for Prometheus failed; trying again at the next scrape", "error", err)
	}
	r.known, r.learned = known, time.Now()
	return known
}

func (r *roster) ask() ([]metrics.MemberInfo, error) {
	ctx, cancel := context.WithTimeout(r.life, rosterPatience)
	defer cancel()
	observed, err := r.engine.Snapshot().Observe(ctx, "")
	if err != nil {
		return nil, err
	}
	var found []metrics.MemberInfo
	for _, o := range observed {
		if o.Instance != "" {
			found = append(found, metrics.MemberInfo{
				Cluster: r.cluster, Group: o.Group, Role: o.Role, Member: o.Name, ID: o.Instance,
			})
		}
	}
	return found, nil
}
