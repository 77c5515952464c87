//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	supervised = 200
	// memoryBar limits the private memory of all supervision together, in bytes.
	memoryBar = 400e6
	// settling is how long after the apply the members count as idle; idleFor is how long they are watched.
	settling = 2 * time.Second
	idleFor  = 20 * time.Second
	// cpuBar is the share of a core from which CPU time counts as measurable.
	cpuBar = 0.01
)

// supervise measures the idle cost of the processes other than the members' own commands.
func (b *bench) supervise(ctx context.Context) (_ []fmt.Stringer, err error) {
	crews := map[int]crew{}
	for _, members := range []int{1, supervised} {
		b.say("supervise: creating a group of %s", count(members))
		var w *workspace
		if w, err = b.workspace(ctx, fmt.Sprintf("idle-%d", members), members, false); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, w.close(ctx)) }()
		if _, err := w.apply(ctx); err != nil {
			return nil, err
		}
		if err := pause(ctx, settling); err != nil {
			return nil, err
		}
		if crews[members], err = crewOf(w.stateDir()); err != nil {
			return nil, err
		}
	}
	b.say("supervise: watching them for %s", idleFor)
	many := crews[supervised]
	alone, err := privateMemory(crews[1].supervisor)
	if err != nil {
		return nil, err
	}
	rows := []struct {
		name   string
		pids   []int
		memory uint64
		cpu    time.Duration
	}{
		{name: "supervisor", pids: []int{many.supervisor}},
		{name: "controller", pids: []int{many.controller}},
		{name: fmt.Sprintf("shells (%d)", len(many.shells)), pids: many.shells},
		{name: "in all", pids: many.all()},
	}
	before := make([]time.Duration, len(rows))
	for i, row := range rows {
		if before[i], err = cpuTime(row.pids...); err != nil {
			return nil, err
		}
	}
	begin := time.Now()
	if err := pause(ctx, idleFor); err != nil {
		return nil, err
	}
	elapsed := time.Since(begin)
	for i := range rows {
		row := &rows[i]
		after, err := cpuTime(row.pids...)
		if err != nil {
			return nil, err
		}
		row.cpu = after - before[i]
		if row.memory, err = privateMemory(row.pids...); err != nil {
			return nil, err
		}
	}

	t := &table{head: []string{"processes", "private memory", fmt.Sprintf("CPU time in %s", idleFor), "of a core"}}
	for _, row := range rows {
		t.add(row.name, mebibytes(row.memory), fmt.Sprintf("%.2f s", row.cpu.Seconds()),
			fmt.Sprintf("%.2f %%", 100*row.cpu.Seconds()/elapsed.Seconds()))
	}
	all := rows[len(rows)-1]
	share := all.cpu.Seconds() / elapsed.Seconds()
	return []fmt.Stringer{
		t,
		note(fmt.Sprintf("Bar: %s members under 400 MB (%s) of private memory in all: %s.", count(supervised),
			mebibytes(memoryBar), verdict(all.memory < memoryBar))),
		note(fmt.Sprintf("Bar: no measurable CPU (under %.0f %% of a core): %s.", 100*cpuBar, verdict(share < cpuBar))),
		note(fmt.Sprintf("Why one for all: a supervisor of a single member has %s; one for each would be %s.",
			mebibytes(alone), mebibytes(supervised*alone))),
	}, nil
}
