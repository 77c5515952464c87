//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/docker/docker/api/types/swarm"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/image"
)

const (
	// swarmMembers is the size of the group that is applied, changed and destroyed, in comparison with the docker
	// command.
	swarmMembers = 100
	// swarmParallel is how many members are changed at a time.
	swarmParallel = 10
	// swarmRuns is how often that is done; each run starts and ends hundreds of containers.
	swarmRuns = 3
	// swarmRest is the pause before plans are measured: after this many starts, gossip takes processor time from
	// Terraform for a while.
	swarmRest = 15 * time.Second
)

// swarmPlanSizes are the sizes of the groups to plan; the last is compared with the first.
var swarmPlanSizes = []int{10, 100, 300}

// The bars of a Swarm.
const (
	swarmCallsBar  = 6
	swarmPlanBar   = 1.5
	swarmApplyBar  = 1.0
	swarmUpdateBar = 1.1
	swarmMemoryBar = 120 << 20
)

// swarm measures a Swarm of three real Engines on this machine.
func (b *bench) swarm(ctx context.Context) (_ []fmt.Stringer, err error) {
	s, err := b.startSwarm(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.bed.Close()) }()
	if s.proxy, err = testbed.StartProxy(s.bed.Nodes[0]); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.proxy.Close()) }()
	plans, err := s.plans(ctx)
	if err != nil {
		return nil, err
	}
	against, err := s.against(ctx)
	return append(plans, against...), err
}

// swarmBench is a bed with two images of the members' program.
type swarmBench struct {
	lab
	bed    *testbed.Bed
	proxy  *testbed.Proxy // nil if requests are not counted
	images [2]string      // their IDs
}

// startSwarm starts the bed; the caller has to close it.
func (b *bench) startSwarm(ctx context.Context) (_ *swarmBench, err error) {
	b.say("swarm: starting three Engines")
	bed, err := testbed.Start(ctx, testbed.Options{Nodes: 3, Managers: 1})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, bed.Close())
		}
	}()
	s := &swarmBench{
		lab: lab{bench: b, engine: "swarm", docker: bed.Nodes[0].Host(), pooled: bed.Nodes[0].Name}, bed: bed,
	}
	for i, version := range []string{"one", "two"} {
		if s.images[i], err = s.loadMember(ctx, version); err != nil {
			return nil, err
		}
	}
	agent, err := s.loadAgent(ctx)
	s.settings = fmt.Sprintf("docker = { controller_image = %q }", agent)
	return s, err
}

// loadMember loads an image of the members' program onto all nodes, and returns its ID.
func (s *swarmBench) loadMember(ctx context.Context, version string) (string, error) {
	program, err := image.FromDisk("/member", s.member)
	if err != nil {
		return "", err
	}
	return s.load(ctx, "bench:"+version,
		v1.Config{Entrypoint: []string{"/member"}, Labels: map[string]string{"version": version}}, program)
}

// load loads an image of some files onto all nodes, and returns its ID.
func (s *swarmBench) load(ctx context.Context, name string, config v1.Config, files ...image.File) (string, error) {
	built, err := image.Build(config, files...)
	if err != nil {
		return "", err
	}
	var archive bytes.Buffer
	if err := image.Write(&archive, name, built); err != nil {
		return "", err
	}
	if err := s.bed.Load(ctx, name, archive.Bytes()); err != nil {
		return "", err
	}
	return image.ID(built)
}

// addresses returns the nodes as the value of a cluster's hosts.
func (s *swarmBench) addresses() string {
	var hosts strings.Builder
	for _, node := range s.bed.Nodes {
		fmt.Fprintf(&hosts, "%s = { address = %q }, ", node.Name, node.Host())
	}
	return "{ " + hosts.String() + "}"
}

// waiting returns the attributes of a group that waits, given its image.
func waiting(imageID string) string {
	return fmt.Sprintf("image     = %q\n  args      = [\"wait\"]", imageID)
}

// plans measures plans without changes.
func (s *swarmBench) plans(ctx context.Context) (_ []fmt.Stringer, err error) {
	w, err := s.workspace(ctx, "swarm-plan", "") // through one endpoint, to count its requests
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close(ctx, w)) }()
	plans, err := s.lab.plans(ctx, w, swarmPlanSizes, waiting(s.images[0]), swarmRest, s.calls)
	if err != nil {
		return nil, err
	}
	return swarmPlanTable(plans), nil
}

// calls returns the requests of a plan, counted by a proxy. It is a separate plan, since copying the answers would add
// to the measured time.
func (s *swarmBench) calls(ctx context.Context, w *workspace) (engineCalls, error) {
	direct := w.docker
	defer func() { w.docker = direct }()
	w.docker = s.proxy.Host()
	s.proxy.Reset()
	_, err := w.plan(ctx)
	calls := engineCalls{counts: map[string]int{}}
	for _, call := range s.proxy.Calls() {
		calls.add(fmt.Sprint(call))
	}
	return calls, err
}

func swarmPlanTable(plans []labPlan) []fmt.Stringer {
	first, last := plans[0], plans[len(plans)-1]
	t := &table{head: []string{"members", "plan", "ratio", "requests", "provider's peak memory"}}
	calls := 0
	for _, p := range plans {
		calls = max(calls, p.calls.total())
		t.add(count(p.members), p.took.seconds(), times(p.took.ratio(first.took)), count(p.calls.total()),
			mebibytes(p.memory))
	}
	ratio := last.took.ratio(first.took)
	return []fmt.Stringer{
		t,
		note("A third of the members have a slot of a GPU pool. An agent measures each host."),
		note("Requests are those to the Docker API of the manager, the ping included."),
		note(fmt.Sprintf("Bar: at most %d requests at any size: %d, %s.", swarmCallsBar, calls,
			verdict(calls <= swarmCallsBar))),
		note(fmt.Sprintf("Bar: %s members at most %s the plan of %s: %s, %s.", count(last.members), times(swarmPlanBar),
			count(first.members), times(ratio), verdict(ratio <= swarmPlanBar))),
		note(fmt.Sprintf("Bar: below %s at %s members: %s, %s.\n", mebibytes(swarmMemoryBar), count(last.members),
			mebibytes(last.memory), verdict(last.memory < swarmMemoryBar))),
	}
}

// against measures apply, change and destroy of a group, in turns with the docker command doing the same to a stack.
func (s *swarmBench) against(ctx context.Context) (_ []fmt.Stringer, err error) {
	w, err := s.workspace(ctx, "swarm-apply", s.addresses())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close(ctx, w)) }()
	if _, err := w.apply(ctx); err != nil { // only the cluster
		return nil, err
	}
	d := dockerStack{s}
	defer func() { err = errors.Join(err, d.clean(context.WithoutCancel(ctx))) }()
	works := []struct {
		name         string
		bar          float64
		ours, theirs func() error
		// own does nothing in Terraform, to measure its own time.
		own func() error
		// clearOurs and clearTheirs clean up unmeasured; nil if the next work does so.
		clearOurs, clearTheirs func() error
		took, spent, docker    sample
	}{
		{
			name: fmt.Sprintf("apply %d until all run", swarmMembers), bar: swarmApplyBar,
			own:  func() error { return s.applied(ctx, w, 0, "") },
			ours: func() error { return s.applied(ctx, w, swarmMembers, waiting(s.images[0])) },
			theirs: func() error {
				if err := d.deploy(ctx, "wait"); err != nil {
					return err
				}
				return d.awaitTasks(ctx, swarm.TaskStateRunning, s.images[0], swarmMembers, nil)
			},
		},
		{
			name: fmt.Sprintf("another image for %d, %d at a time", swarmMembers, swarmParallel), bar: swarmUpdateBar,
			own:    func() error { return s.applied(ctx, w, swarmMembers, waiting(s.images[0])) },
			ours:   func() error { return s.applied(ctx, w, swarmMembers, waiting(s.images[1])) },
			theirs: func() error { return d.update(ctx) },
		},
		{
			name: fmt.Sprintf("destroy %d until the last container is gone", swarmMembers), bar: swarmApplyBar,
			own: func() error { return s.applied(ctx, w, swarmMembers, waiting(s.images[1])) },
			ours: func() error {
				if _, err := w.terraform(ctx, "destroy", "-auto-approve", "-target=trainyard_group.job"); err != nil {
					return err
				}
				return d.gone(ctx, "trainyard.group=job")
			},
			theirs: func() error { return d.remove(ctx) },
		},
		{
			name: fmt.Sprintf("a sweep of %d runs until all have ended", swarmMembers), bar: swarmApplyBar,
			own:  func() error { return s.applied(ctx, w, 0, "") },
			ours: func() error { return s.swept(ctx, w, swarmMembers, s.images[0]) },
			theirs: func() error {
				if err := d.deploy(ctx, "exit:0"); err != nil {
					return err
				}
				return d.awaitTasks(ctx, swarm.TaskStateComplete, s.images[0], swarmMembers, nil)
			},
			clearOurs:   func() error { return s.applied(ctx, w, 0, "") },
			clearTheirs: func() error { return d.remove(ctx) },
		},
	}
	for range swarmRuns {
		for _, side := range []string{"Trainyard", "docker"} {
			for i := range works {
				s.say("swarm: %s, by %s", works[i].name, side)
				do, into, empty := works[i].ours, &works[i].took, works[i].clearOurs
				if side == "docker" {
					do, into, empty = works[i].theirs, &works[i].docker, works[i].clearTheirs
				} else if err := timed(works[i].own, &works[i].spent); err != nil {
					return nil, err
				}
				if err := timed(do, into); err != nil {
					return nil, fmt.Errorf("%s, by %s: %w", works[i].name, side, err)
				}
				if empty != nil {
					if err := empty(); err != nil {
						return nil, err
					}
				}
			}
		}
	}
	t := &table{head: []string{"work", "Trainyard", "Terraform's own", "docker", "ratio", "without that", "bar", ""}}
	for _, work := range works {
		ratio := work.took.ratio(work.docker)
		t.add(work.name, work.took.seconds(), work.spent.seconds(), work.docker.seconds(), times(ratio),
			times(ratio-work.spent.ratio(work.docker)), "≤ "+times(work.bar), verdict(ratio <= work.bar))
	}
	return []fmt.Stringer{t, note(fmt.Sprintf("Medians of %d runs. Trainyard's times include Terraform's own, which "+
		"is what an apply takes with nothing to do. docker: stack deploy, service update %d at a time, stack rm.",
		swarmRuns, swarmParallel))}, nil
}

// swept applies a sweep of this many short runs, all in parallel, and waits until they have ended.
func (s *swarmBench) swept(ctx context.Context, w *workspace, runs int, imageID string) error {
	if err := s.configure(w, 0, "", false); err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(w.dir, "main.tf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(file, `
resource "trainyard_sweep" "runs" {
  cluster      = trainyard_cluster.bench
  name         = "runs"
  image        = %q
  args         = ["exit:0"]
  runs         = { for i in range(%[2]d) : "run-${i}" => {} }
  max_parallel = %[2]d
  wait_for     = "completed"
}
`, imageID, runs)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	_, err = w.apply(ctx)
	return err
}
