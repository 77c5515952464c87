package systemd

import (
	"context"
	"errors"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/relay"
)

// StartController starts the agent on each host, and the controller on the store host.
func (e *Engine) StartController(ctx context.Context) error {
	cluster, err := engine.Cluster(ctx, e)
	if err != nil {
		return unlessGone(err)
	}
	orders := relay.Orders{Cluster: &cluster.Spec}
	if e.reach.peers == nil { // the controller keeps its own version
		if orders.Agents, err = e.reach.program.agents(); err != nil {
			return err
		}
	}
	return everywhere(ctx, e, relay.StartResidents, orders)
}

// Residents returns the states of the controller and the agents.
func (e *Engine) Residents(ctx context.Context) (domain.Residents, error) { return e.residents(ctx) }

func (e *Engine) readResidents(ctx context.Context) (domain.Residents, error) {
	cluster, err := engine.Cluster(ctx, e)
	if err != nil {
		return domain.Residents{}, err
	}
	p, err := e.whole(ctx)
	if err != nil {
		return domain.Residents{}, err
	}
	found, failed := askAll(ctx, e, p, relay.Residents, none)
	all := domain.Residents{Controller: found[p.ledger.Store].Controller}
	if err := failed[p.ledger.Store]; err != nil {
		all.Controller = unreachable(err)
	}
	all.Controller.Host = p.ledger.Store
	_, all.Controller.Metrics = cluster.Spec.MetricsAddresses(p.ledger.Store)
	if cluster.Spec.Agent.Disabled {
		return all, ctx.Err()
	}
	all.Agents = make(map[string]domain.Resident, len(p.hosts))
	for name := range p.hosts {
		agent, answered := found[name].Agents[name]
		if err := failed[name]; err != nil {
			agent = unreachable(err)
		} else if !answered {
			agent = domain.Resident{State: domain.ResidentStarting}
		}
		agent.Host = name
		agent.Metrics, _ = cluster.Spec.MetricsAddresses(name)
		all.Agents[name] = agent
	}
	return all, ctx.Err()
}

// unreachable is a resident of a host that can't be reached.
func unreachable(err error) domain.Resident {
	return domain.Resident{State: domain.ResidentAbsent, Error: err.Error(), Excused: true}
}

// StopController ends the controller and the agents, the controller first. What runs on a host that is away can't be
// ended; without a controller, nothing follows from it.
func (e *Engine) StopController(ctx context.Context) error {
	p, err := e.whole(ctx)
	if err != nil {
		return unlessGone(err)
	}
	if _, err := askHost(ctx, e, p, p.ledger.Store, relay.StopController, none); err != nil &&
		!errors.Is(err, relay.ErrOutside) {
		return err
	}
	_, failed := askAll(ctx, e, p, relay.StopController, none)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return besidesAway(failed)
}
