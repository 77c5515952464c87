//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/process"
)

const (
	// A member requests reactionCPUs processors and should use reactionPercent percent of them. The load keeps one
	// member busy for reactionLoad percent, which needs reactionMembers: 3.6, rounded up, since a load of exactly four
	// would need five with any noise.
	reactionCPUs, reactionPercent, reactionLoad = 0.2, 25, 90
	reactionMembers                             = (reactionLoad + reactionPercent - 1) / reactionPercent
	// reactionMost is the maximum count: more than needed, so that too many would be noticed.
	reactionMost = 3 * reactionMembers
)

// reactions are the measured settings, and the number of runs.
var reactions = []reaction{
	{interval: time.Second, window: 5 * time.Second, runs: 5},
	{interval: domain.DefaultScalingInterval, window: domain.DefaultAgentWindow, runs: 2},
}

// reaction is how fast a policy with a setting follows a load.
type reaction struct {
	interval, window time.Duration
	runs             int
	measured         []reacted
}

// reacted is when things happened after the load arrived, and the most members requested by then.
type reacted struct {
	decided, first, last time.Duration
	most                 int
	why                  []string // why there were too many
}

// start returns how long the first new member took from the decision until it ran.
func (r reacted) start() time.Duration { return r.first - r.decided }

// bar limits the time until the first new member runs; all of them may take twice that.
func (r reaction) bar(one reacted) time.Duration { return r.window + r.interval + one.start() }

// held reports whether all runs were fast enough, and none had more members than needed.
func (r reaction) held() (first, last, most bool) {
	first, last, most = true, true, true
	for _, one := range r.measured {
		first = first && one.first <= r.bar(one)
		last = last && one.last <= 2*r.bar(one)
		most = most && one.most == reactionMembers
	}
	return first, last, most
}

// reaction measures how fast policies follow a sudden processor load, which the existing members share.
func (b *bench) reaction(ctx context.Context) (_ []fmt.Stringer, err error) {
	w, err := b.workspace(ctx, "reaction", 0, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close(ctx)) }()
	folder := filepath.Join(w.dir, "load")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return nil, err
	}
	measured := slices.Clone(reactions)
	for i := range measured {
		r := &measured[i]
		config := configuration(w.name, 0, false) + fmt.Sprintf(burners, b.member, folder, reactionCPUs, reactionMost,
			r.interval, r.window, reactionPercent)
		if err := os.WriteFile(filepath.Join(w.dir, "main.tf"), []byte(config), 0o600); err != nil {
			return nil, err
		}
		if _, err := w.apply(ctx); err != nil {
			return nil, err
		}
		e, _, err := w.opened()
		if err != nil {
			return nil, err
		}
		for run := range r.runs {
			b.say("reaction: interval %s and window %s, %d of %d", r.interval, r.window, run+1, r.runs)
			// Each run starts in a different part of the interval.
			if err := pause(ctx, r.window+r.interval*time.Duration(run)/time.Duration(r.runs)); err != nil {
				return nil, err
			}
			one, err := r.follow(ctx, e, w.stateDir(), filepath.Join(folder, "load"))
			if err != nil {
				return nil, err
			}
			r.measured = append(r.measured, one)
		}
	}
	return reactionTable(measured), nil
}

// burners is the configuration of a group whose members share a load, and of its policy.
const burners = `
resource "trainyard_group" "burner" {
  cluster    = trainyard_cluster.bench
  name       = "burner"
  framework  = "none"
  command    = [%q, "burn:%s"]
  roles      = { worker = { on_scale = "none", resources = { cpus = %g } } }
  completion = { when = "never" }
}

resource "trainyard_autoscaling_policy" "burner" {
  cluster  = trainyard_cluster.bench
  group    = trainyard_group.burner.name
  role     = "worker"
  min      = 1
  max      = %d
  interval = "%s"
  scale_in = { stabilisation_window = "0s" }

  metrics = {
    cpu = {
      source    = { agent = { measure = "cpu_percent" } }
      window    = "%s"
      algorithm = { target = { value = %d } }
    }
  }
}
`

// The group and the role that follow the load.
const burnerGroup, burnerRole = "burner", "worker"

// follow starts the load, watches until some time after the last member needed, and stops the load.
func (r reaction) follow(
	ctx context.Context, e *process.Engine, dir statedir.Dir, load string,
) (one reacted, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, err := e.Watch(ctx)
	if err != nil {
		return one, err
	}
	begin := time.Now()
	if err := writeLoad(load, reactionCPUs*reactionLoad/100); err != nil {
		return one, err
	}
	counted := func(is func(count int, at time.Time) bool) func() (bool, error) {
		return func() (bool, error) {
			doc, err := engine.Get[domain.GroupDocument](ctx, e, burnerGroup)
			one.most = max(one.most, doc.Counts[burnerRole])
			return err == nil && is(doc.Counts[burnerRole], doc.Scaled[burnerRole].At), err
		}
	}
	err = await(ctx, events, "second member", counted(func(count int, at time.Time) bool {
		one.decided = at.Sub(begin)
		return count > 1
	}))
	if err != nil {
		return one, err
	}
	for _, awaited := range []struct {
		index int
		ran   *time.Duration
	}{{1, &one.first}, {reactionMembers - 1, &one.last}} {
		member := domain.MemberName(burnerGroup, burnerRole, awaited.index)
		err := await(ctx, events, "member "+member, func() (bool, error) {
			_, _ = counted(func(int, time.Time) bool { return true })() // also notices too many
			state, err := statedir.Read[statedir.State](dir.Document(statedir.States, member))
			if errors.Is(err, engine.ErrNotFound) ||
				err == nil && (state.State != domain.StateRunning || state.StartedAt == nil) {
				return false, nil
			}
			if err == nil {
				*awaited.ran = state.StartedAt.Sub(begin)
			}
			return err == nil, err
		})
		if err != nil {
			return one, err
		}
	}
	// Surplus members would be requested once the last member has been measured for a window.
	watched, stop := context.WithTimeout(ctx, r.window+2*r.interval)
	defer stop()
	if err := await(watched, events, "", counted(func(int, time.Time) bool { return false })); ctx.Err() != nil ||
		watched.Err() == nil {
		return one, errors.Join(err, ctx.Err())
	}
	if err := writeLoad(load, 0); err != nil {
		return one, err
	}
	most := one.most // later ones, before the load has left the window, are not due to it
	if one.why, err = whyMoreThan(ctx, e, reactionMembers, begin); err != nil {
		return one, err
	}
	err = await(ctx, events, "single member", counted(func(count int, _ time.Time) bool { return count == 1 }))
	one.most = most
	return one, err
}

// whyMoreThan returns why more members than enough were requested since a time, according to the history.
func whyMoreThan(ctx context.Context, e engine.Store, enough int, since time.Time) (why []string, err error) {
	stored, err := engine.Contents(ctx, e, autoscale.HistoryKind)
	if err != nil {
		return nil, err
	}
	entries, unread := autoscale.ReadHistory(stored, time.Now(),
		autoscale.Selection{Group: burnerGroup, Role: burnerRole, Since: since, OnlyChanges: true})
	for _, entry := range entries {
		if entry.To > max(enough, entry.From) {
			why = append(why, fmt.Sprintf("from %d to %d members, as %s", entry.From, entry.To, entry.Metrics[0].Why))
		}
	}
	return why, unread
}

// writeLoad sets the total load that the members share.
func writeLoad(path string, cpus float64) error {
	if err := os.WriteFile(path+".new", fmt.Append(nil, cpus), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func reactionTable(measured []reaction) []fmt.Stringer {
	t := &table{head: []string{
		fmt.Sprintf("a load for %.1f members comes to one", float64(reactionLoad)/reactionPercent), "runs", "decided",
		"start", "second member", "fourth member", "most members",
	}}
	var bars []fmt.Stringer
	for _, r := range measured {
		var decided, start, first, last sample
		var most []string
		for _, one := range r.measured {
			decided, start = append(decided, one.decided), append(start, one.start())
			first, last = append(first, one.first), append(last, one.last)
			most = append(most, fmt.Sprint(one.most))
			for _, why := range one.why {
				bars = append(bars, note("Too many: "+why))
			}
		}
		name := fmt.Sprintf("interval %s, window %s", r.interval, r.window)
		t.add(name, count(len(r.measured)), decided.seconds(), start.seconds(), first.seconds(), last.seconds(),
			strings.Join(slices.Compact(slices.Sorted(slices.Values(most))), ", "))
		soon, all, few := r.held()
		bars = append(bars, note(fmt.Sprintf("Bars, %s: the second member within window + interval + start: %s; the "+
			"fourth within twice that: %s; four members and no more: %s.",
			name, verdict(soon), verdict(all), verdict(few))))
	}
	return append([]fmt.Stringer{
		t,
		note(fmt.Sprintf("Each member requests %g processors, and is to use %d %% of them. A load of %d %% comes at "+
			"once, and is shared by the members that there are. A start", reactionCPUs, reactionPercent, reactionLoad)),
		note("is from the decision until the member runs. The count is watched for a window and two intervals after " +
			"the fourth member runs."),
	}, bars...)
}
