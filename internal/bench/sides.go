//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
)

// side is what one engine, or Ansible, took for the same work.
type side struct {
	name                          string
	apply, plan, destroy, restart sample
}

// restarted is the number of members that are killed one after another.
const restarted = 5

// side measures the work: a group is applied, planned without changes, and destroyed.
func (l *lab) side(ctx context.Context, w *workspace, runs string, gone func(context.Context) error,
	restarts func(context.Context) (sample, error)) (s side, err error) {
	s.name = l.engine
	if err := l.applied(ctx, w, 0, ""); err != nil {
		return s, err
	}
	for i := range labRuns {
		l.say("%s: apply, plan and destroy of %s", l.engine, count(labMembers))
		if err := timed(func() error { return l.applied(ctx, w, labMembers, runs) }, &s.apply); err != nil {
			return s, err
		}
		if i == 0 {
			if s.restart, err = restarts(ctx); err != nil {
				return s, err
			}
		}
		took, err := w.plan(ctx)
		if err != nil {
			return s, err
		}
		s.plan = append(s.plan, took)
		err = timed(func() error {
			_, err := w.terraform(ctx, "destroy", "-auto-approve", "-target=trainyard_group.job")
			return errors.Join(err, gone(ctx))
		}, &s.destroy)
		if err != nil {
			return s, err
		}
	}
	return s, nil
}

// swarmSide measures the work on a Swarm, and the training.
func (b *bench) swarmSide(ctx context.Context) (measured side, trained training, err error) {
	s, err := b.startSwarm(ctx)
	if err != nil {
		return measured, trained, err
	}
	defer func() { err = errors.Join(err, s.bed.Close()) }()
	w, err := s.workspace(ctx, "swarm-side", s.addresses())
	if err != nil {
		return measured, trained, err
	}
	defer func() { err = errors.Join(err, s.close(ctx, w)) }()
	const label = "trainyard.group=job"
	measured, err = s.side(ctx, w, waiting(s.images[0]),
		func(ctx context.Context) error { return dockerStack{s}.gone(ctx, label) },
		func(ctx context.Context) (sample, error) { return s.restarts(ctx, label) })
	if err != nil {
		return measured, trained, err
	}
	if _, err := w.destroy(ctx); err != nil { // a Swarm has one cluster
		return measured, trained, err
	}
	trained, err = s.train(ctx, s.lab, s.addresses())
	return measured, trained, err
}

// restarts kills containers with a label on the first node, and returns how long after the end of each the next one
// started.
func (s *swarmBench) restarts(ctx context.Context, label string) (took sample, err error) {
	docker := s.bed.Nodes[0].Client()
	instances := func() (map[string]bool, error) {
		found, err := docker.ContainerList(ctx,
			container.ListOptions{Filters: filters.NewArgs(filters.Arg("label", label))})
		ids := map[string]bool{}
		for _, c := range found {
			ids[c.ID] = true
		}
		return ids, err
	}
	moment := func(id string, of func(*container.State) string) (time.Time, error) {
		c, err := docker.ContainerInspect(ctx, id)
		if err != nil {
			return time.Time{}, err
		}
		return time.Parse(time.RFC3339Nano, of(c.State))
	}
	for range restarted {
		before, err := instances()
		if err != nil {
			return nil, err
		}
		var victim string
		for victim = range before {
			break
		}
		if err := docker.ContainerKill(ctx, victim, "KILL"); err != nil {
			return nil, err
		}
		var next string
		for next == "" {
			if err := pause(ctx, stackLook); err != nil {
				return nil, err
			}
			now, err := instances()
			if err != nil {
				return nil, err
			}
			for id := range now {
				if !before[id] {
					next = id
				}
			}
		}
		ended, err := moment(victim, func(s *container.State) string { return s.FinishedAt })
		if err != nil {
			return nil, err
		}
		started, err := moment(next, func(s *container.State) string { return s.StartedAt })
		if err != nil {
			return nil, err
		}
		took = append(took, started.Sub(ended))
	}
	return took, nil
}

// sidesTable compares the first side, bare hosts, with the others. absent says why one is missing, if so.
func sidesTable(sides []side, absent error) []fmt.Stringer {
	ours, swarm := sides[0], sides[1]
	t := &table{head: []string{fmt.Sprintf("work, of %d members", labMembers)}}
	for _, s := range sides {
		t.head = append(t.head, s.name)
	}
	if absent != nil {
		t.head = append(t.head, "Ansible")
	}
	t.head = append(t.head, "of swarm's", "bar", "")
	row := func(name string, of func(side) sample, shown func(sample) string, bar string, held func(sample) bool) {
		cells := []string{name}
		for _, s := range sides {
			cells = append(cells, shown(of(s)))
		}
		if absent != nil {
			cells = append(cells, "not there")
		}
		cells = append(cells, times(of(ours).ratio(of(swarm))), bar, "")
		if held != nil {
			cells[len(cells)-1] = verdict(held(of(ours)))
		}
		t.add(cells...)
	}
	within := func(of func(side) sample) func(sample) bool {
		return func(s sample) bool { return s.ratio(of(swarm)) <= hostsApplyBar }
	}
	apply, destroy := func(s side) sample { return s.apply }, func(s side) sample { return s.destroy }
	atMost := "≤ " + times(hostsApplyBar)
	row("apply until all run", apply, sample.seconds, atMost, within(apply))
	row("plan without change; Ansible: --check", func(s side) sample { return s.plan }, sample.seconds, "", nil)
	row("destroy until all are gone", destroy, sample.seconds, atMost, within(destroy))
	row("a member's end until it is started again", func(s side) sample { return s.restart }, sample.milliseconds,
		fmt.Sprintf("≤ %d ms", restartBar.Milliseconds()), func(s sample) bool { return s.median() <= restartBar })
	notes := []fmt.Stringer{
		t,
		note(fmt.Sprintf(
			"Medians of %d runs, Ansible's of one. Three hosts, or nodes; restarts are set to wait for nothing, and",
			labRuns,
		)),
		note(fmt.Sprintf("are those of %d members that were killed.", restarted)),
	}
	if absent != nil {
		return append(notes, note(absent.Error()+"\n"))
	}
	return append(notes,
		note(
			"Ansible: a playbook that copies a program, writes a unit a member, and starts them; 10 forks, "+
				"pipelining, kept",
		),
		note("connections; units with Restart=always, RestartSec=0.\n"))
}
