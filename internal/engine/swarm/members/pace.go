package members

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

const (
	// startsAtOnce is how many members a host starts at a time, or its number of CPUs if that is higher. Most of a
	// start is kernel work under locks that all containers share: beyond that, each start slows down all others.
	startsAtOnce = 8
	// startPatience is how long starting members keep others waiting: one may take long, or never run.
	startPatience = 10 * time.Second
)

// pacing limits how many new members start at a time on each node.
type pacing struct {
	// run is the run in which they start.
	run int
	// room is how many may start at a time, by node; unlimited if missing.
	room map[string]int
	// onWay are the nodes of members that were started and do not run yet, by service name.
	onWay map[string]string
}

func newPacing(run int, nodes []swarm.Node) *pacing {
	p := &pacing{run: run, room: make(map[string]int, len(nodes)), onWay: map[string]string{}}
	for _, node := range nodes {
		p.room[node.ID] = max(startsAtOnce, int(node.Description.Resources.NanoCPUs/spec.NanoCPUs))
	}
	return p
}

// next splits changes into those that start now and those that wait. A member with a health check never waits, as it
// may be healthy only once all others run; nor does one that the Swarm places.
func (p *pacing) next(changes []change) (now, later []change) {
	starting := map[string]int{}
	for _, node := range p.onWay {
		starting[node]++
	}
	for _, c := range changes {
		room, bounded := p.room[c.node]
		bounded = bounded && c.starts && c.want.TaskTemplate.ContainerSpec.Healthcheck == nil
		if bounded && starting[c.node] >= room {
			later = append(later, c)
			continue
		}
		now = append(now, c)
		if bounded {
			starting[c.node]++
			p.onWay[c.want.Name] = c.node
		}
	}
	return now, later
}

// arrive reports whether some of those on the way have arrived: they run, or have ended already.
func (p *pacing) arrive(tasks []swarm.Task) bool {
	before := len(p.onWay)
	for _, task := range tasks {
		if id, found := spec.IdentityOfTask(task); found && id.Run == p.run &&
			(dockerapi.Ended(task) || task.Status.State == swarm.TaskStateRunning) {
			delete(p.onWay, id.Member(id.Index))
		}
	}
	return len(p.onWay) < before
}

// startInTurns starts what is staged for a run, new members some at a time on each node.
func (e Members) startInTurns(
	ctx context.Context, run int, changes []change,
	start func(ctx context.Context, m dockerapi.Manager, c change) error,
) error {
	nodes, err := dockerapi.Live(e.Connection).Nodes(ctx)
	if err != nil {
		return err
	}
	p := newPacing(run, nodes)
	for later := changes; len(later) > 0; {
		var now []change
		now, later = p.next(later)
		m, err := e.Connection.Manager(ctx)
		if err != nil {
			return err
		}
		err = dockerapi.InParallel(ctx, now, func(ctx context.Context, c change) error { return start(ctx, m, c) })
		if err != nil || len(later) == 0 {
			return err
		}
		if err := e.awaitArrival(ctx, p); err != nil {
			return fmt.Errorf("%d members not started yet, waiting for others on their hosts: %w", len(later), err)
		}
	}
	return nil
}

// awaitArrival returns when one of those on the way has arrived, or after startPatience, which ends the wait for good.
// It tolerates unreachable managers for [engine.OutagePatience].
func (e Members) awaitArrival(ctx context.Context, p *pacing) error {
	patience, outage := time.Now().Add(startPatience), time.Now().Add(engine.OutagePatience)
	for {
		began := time.Now()
		tasks, err := dockerapi.Live(e.Connection).Tasks(ctx)
		switch {
		case err == nil && p.arrive(tasks):
			return nil
		case err == nil && time.Now().After(patience):
			clear(p.room)
			return nil
		case err != nil && time.Now().After(outage):
			return err
		}
		rest := time.NewTimer(max(taskLook, lookPace.After(time.Since(began))))
		select {
		case <-ctx.Done():
			rest.Stop()
			return errors.Join(ctx.Err(), err)
		case <-rest.C:
		}
	}
}
