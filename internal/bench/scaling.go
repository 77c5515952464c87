//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/procfs"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/process"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

const (
	// The idle policies are those of all roles of scalingGroups groups. Each role has one member.
	scalingGroups, scalingRoles = 20, 50
	scalingPolicies             = scalingGroups * scalingRoles
	// scalingRest is how long they are watched, scalingSettling the pause before that: a few intervals.
	scalingRest     = time.Minute
	scalingSettling = 4 * domain.DefaultScalingInterval
	// scalingBar limits the CPU time of all decisions in an interval, without the queries.
	scalingBar = 200 * time.Millisecond
	// scalingSteps is how often a queue grows while the others are idle.
	scalingSteps = 20
)

// scaling measures the cost of following a thousand policies, and how fast another one acts beside them.
func (b *bench) scaling(ctx context.Context) (_ []fmt.Stringer, err error) {
	b.say("scaling: creating %d groups of %d members", scalingGroups, scalingRoles)
	w, err := b.workspace(ctx, "scaling", 0, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close(ctx)) }()
	if err := os.WriteFile(filepath.Join(w.dir, "main.tf"), []byte(configuration(w.name, 0, false)+scaledGroups),
		0o600); err != nil {
		return nil, err
	}
	if _, err := w.apply(ctx); err != nil {
		return nil, err
	}
	s, err := followedBy(w)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.queue.close()) }()

	probe := policyFor(probeGroup, probeRole, domain.ScalingMetric{
		Source: s.queue.source(), Algorithm: domain.ScalingAlgorithm{Queue: &domain.QueueAlgorithm{PerMember: 1}},
	})
	probe.Interval, probe.Max, probe.ScaleOut.Rates = lasting(time.Second), 1+scalingSteps, unlimited
	if err := s.put(ctx, probe); err != nil {
		return nil, err
	}
	var rests []rest
	var steps []step
	for _, kind := range []struct {
		name   string
		metric func(i int) domain.ScalingMetric
	}{
		{"processors, by agents", byAgents},
		{"one queue, by HTTP", func(int) domain.ScalingMetric {
			return domain.ScalingMetric{
				Source: s.queue.source(),
				Algorithm: domain.ScalingAlgorithm{
					Target: &domain.TargetAlgorithm{Value: 1000, Per: domain.TargetTotal},
				},
			}
		}},
	} {
		b.say("scaling: storing %s policies that follow %s", count(scalingPolicies), kind.name)
		for i := range scalingPolicies {
			if err := s.put(ctx, policyFor(fmt.Sprintf("job-%d", i/scalingRoles),
				fmt.Sprintf("role-%d", i%scalingRoles), kind.metric(i))); err != nil {
				return nil, err
			}
		}
		b.say("scaling: watching the controller for %s", scalingRest)
		r, err := s.rest(ctx, kind.name)
		if err != nil {
			return nil, err
		}
		rests = append(rests, r)
		if steps == nil {
			b.say("scaling: taking %d steps", scalingSteps)
			if steps, err = s.steps(ctx); err != nil {
				return nil, err
			}
		}
	}
	return append(restTable(rests), stepTable(steps)...), nil
}

// The group that is scaled, beside the idle ones.
const probeGroup, probeRole = "probe", "worker"

// scaledGroups is the configuration of the groups.
var scaledGroups = fmt.Sprintf(`
resource "trainyard_group" "job" {
  count      = %d
  cluster    = trainyard_cluster.bench
  name       = "job-${count.index}"
  framework  = "none"
  command    = ["/bin/sleep", "infinity"]
  roles      = { for i in range(%d) : "role-${i}" => { on_scale = "none" } }
  completion = { when = "never" }
}

resource "trainyard_group" "probe" {
  cluster    = trainyard_cluster.bench
  name       = %q
  framework  = "none"
  command    = ["/bin/sleep", "infinity"]
  roles      = { %s = { on_scale = "none" } }
  completion = { when = "never" }
}
`, scalingGroups, scalingRoles, probeGroup, probeRole)

// policyFor returns a policy that follows one metric.
func policyFor(group, role string, metric domain.ScalingMetric) domain.AutoscalingPolicy {
	return domain.AutoscalingPolicy{
		Cluster: "scaling", Group: group, Role: role, Min: 1, Max: 10,
		Metrics: map[string]domain.ScalingMetric{"load": metric},
	}
}

// byAgents returns a metric of sleeping members, with one of three windows.
func byAgents(i int) domain.ScalingMetric {
	return domain.ScalingMetric{
		Source:    domain.ScalingSource{Agent: &domain.AgentSource{Measure: domain.AgentCPUs}},
		Window:    lasting([]time.Duration{15 * time.Second, 30 * time.Second, time.Minute}[i%3]),
		Algorithm: domain.ScalingAlgorithm{Target: &domain.TargetAlgorithm{Value: 0.5}},
	}
}

// scalingBench is a cluster whose controller follows policies.
type scalingBench struct {
	engine     *process.Engine
	dir        statedir.Dir
	controller int
	queue      *lengths
}

// followedBy returns a workspace's cluster, with a queue that policies can follow.
func followedBy(w *workspace) (*scalingBench, error) {
	s := &scalingBench{dir: w.stateDir()}
	var err error
	if s.engine, s.controller, err = w.opened(); err != nil {
		return nil, err
	}
	s.queue, err = newLengths()
	return s, err
}

// opened opens a workspace's cluster, and returns it with its controller's PID. It uses the residents' own program,
// since they would be replaced otherwise.
func (w *workspace) opened() (*process.Engine, int, error) {
	dir := w.stateDir()
	crew, err := crewOf(dir)
	if err != nil {
		return nil, 0, err
	}
	holder, _, err := dir.Holder(statedir.SupervisorLock)
	if err != nil {
		return nil, 0, err
	}
	resident, err := procfs.NewProc(crew.controller)
	if err != nil {
		return nil, 0, err
	}
	program, err := resident.Executable()
	if err != nil {
		return nil, 0, err
	}
	e, err := process.Open(domain.ClusterRef{Name: w.name}, engine.Settings{StateDir: dir.Root},
		process.Program{File: program, Version: holder.Version})
	return e, crew.controller, err
}

// put stores a policy.
func (s *scalingBench) put(ctx context.Context, policy domain.AutoscalingPolicy) error {
	_, err := reconcile.Reconciler{Engine: s.engine}.PutPolicy(ctx, policy, false)
	return err
}

// rest is what the controller used over a time without changes.
type rest struct {
	follows       string
	looks         int
	cpu, elapsed  time.Duration
	private, peak uint64
}

// rest watches the controller. Each evaluation reads the queue's length once.
func (s *scalingBench) rest(ctx context.Context, follows string) (r rest, err error) {
	if err := pause(ctx, scalingSettling); err != nil {
		return r, err
	}
	before, err := cpuTime(s.controller)
	if err != nil {
		return r, err
	}
	begin := time.Now()
	if err := pause(ctx, scalingRest); err != nil {
		return r, err
	}
	r = rest{follows: follows, looks: len(s.queue.askedSince(begin)), elapsed: time.Since(begin)}
	after, err := cpuTime(s.controller)
	if err != nil {
		return r, err
	}
	if r.looks == 0 {
		return r, errors.New("the controller has not looked at any policy")
	}
	r.cpu = after - before
	controller, err := procfs.NewProc(s.controller)
	if err != nil {
		return r, err
	}
	status, err := controller.NewStatus()
	if err != nil {
		return r, err
	}
	r.peak = status.VmHWM
	r.private, err = privateMemory(s.controller)
	return r, err
}

// looksAnInterval is the number of evaluations per interval: one per second, for the policy with that interval.
const looksAnInterval = int(domain.DefaultScalingInterval / time.Second)

// interval returns the CPU time of all decisions in an interval.
func (r rest) interval() time.Duration {
	return r.cpu / time.Duration(r.looks) * time.Duration(looksAnInterval)
}

func restTable(rests []rest) []fmt.Stringer {
	t := &table{head: []string{
		count(scalingPolicies) + " policies follow", "looks in " + scalingRest.String(), "CPU a look", "an interval",
		"of a core", "private memory", "peak memory",
	}}
	for _, r := range rests {
		t.add(r.follows, count(r.looks), inMilliseconds(r.cpu/time.Duration(r.looks)), inMilliseconds(r.interval()),
			fmt.Sprintf("%.1f %%", 100*r.cpu.Seconds()/r.elapsed.Seconds()), mebibytes(r.private), mebibytes(r.peak))
	}
	shared := rests[len(rests)-1].interval()
	return []fmt.Stringer{
		t,
		note(fmt.Sprintf("Each decides every %s, of a role of one member in %d groups, and changes nothing. They are "+
			"spread: a look each second has a fifth of them decide,", domain.DefaultScalingInterval, scalingGroups)),
		note(fmt.Sprintf("and an interval is %d looks. On a machine that is busy otherwise, looks are late, fewer, "+
			"and have more of them decide.", looksAnInterval)),
		note("What agents report is the largest of all queries: the use of all members, over three windows. The queue " +
			"is one JSON endpoint, asked once a look,"),
		note("whoever follows it: what is left is all that is no query. What the agents themselves take is not in it."),
		note(fmt.Sprintf("Bar: the decisions of an interval under %s of CPU, besides the queries: %s, %s.",
			inMilliseconds(scalingBar), inMilliseconds(shared), verdict(shared < scalingBar))),
	}
}

func inMilliseconds(d time.Duration) string {
	return fmt.Sprintf("%.0f ms", float64(d)/float64(time.Millisecond))
}
