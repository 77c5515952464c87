//go:build linux

package swarm_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	dockerswarm "github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// succession is a member that ignores its stop signal, and is to be replaced.
type succession struct {
	farm
	e     opened
	proxy *testbed.Proxy
	// next is what replaces it, under the same name.
	next domain.MemberSpec
}

// TestSuccessors: an instance of a member starts only once the former one has ended, if that takes longer than a Swarm
// waits, even if an apply died meanwhile; and also if a drain told it to end.
func TestSuccessors(t *testing.T) {
	t.Parallel()
	f := newFarm(t)
	proxy := testbed.NewProxy(t, f.bed.Nodes[0])
	e := opened{cluster: "lab", endpoint: proxy.Host()}.again(t)
	for i, c := range []struct {
		name string
		host int // of the successor
		do   func(s *succession)
	}{
		{"replaced", 1, func(*succession) {}},
		{"an apply died", 1, func(s *succession) {
			ctx, die := context.WithCancel(acctest.Bounded(s.T))
			done := s.start(ctx)
			s.wantWait(done)
			die()
			if err := <-done; !errors.Is(err, context.Canceled) {
				s.Fatalf("the apply that died ended with %v", err)
			}
		}},
		{"drained", 0, (*succession).drain},
	} {
		t.Run(c.name, func(t *testing.T) {
			own := f
			own.T = t
			first := domain.MemberSpec{
				Cluster: "lab", Group: "job", Role: "worker", Index: i, Name: domain.MemberName("job", "worker", i),
				Host: declared(f.bed.Nodes[1]), Address: domain.MemberName("job", "worker", i) + ":9000",
				Hash: "first", Run: 1, Image: memberImage, Args: []string{"ignore", "print:here", "wait"},
				GracePeriod: domain.Duration(time.Hour), Restart: domain.Role{}.RestartRule(),
			}
			must(t, e.Stage(t.Context(), []domain.MemberSpec{first}))
			must(t, e.Start(acctest.Bounded(t), first.Group, first.Run))
			acctest.Eventually(t, "the member's first line", func() bool {
				lines, err := e.Logs(t.Context(), first.Name, engine.LogOptions{})
				return err == nil && len(lines) == 1
			})
			s := &succession{own, e, proxy, first}
			s.next.Host, s.next.Hash, s.next.Args = declared(f.bed.Nodes[c.host]), "second", []string{"wait"}
			s.next.GracePeriod = domain.DefaultGracePeriod
			former := s.instances()[0]
			t.Cleanup(func() { _ = f.bed.Nodes[1].Client().ContainerKill(acctest.Bounded(t), former, "KILL") })
			c.do(s)
			done := s.start(acctest.Bounded(t))
			s.wantWait(done)
			if ids := s.instances(); len(ids) != 1 || ids[0] != former {
				t.Errorf("beside %s, %v run", former, ids)
			}
			must(t, f.bed.Nodes[1].Client().ContainerKill(t.Context(), former, "KILL"))
			must(t, <-done)
			acctest.Eventually(t, "the successor", func() bool {
				ids := s.instances()
				return len(ids) == 1 && ids[0] != former
			})
		})
	}
}

// start starts the successor, and returns where the result will be.
func (s *succession) start(ctx context.Context) <-chan error {
	s.Helper()
	must(s.T, s.e.Stage(s.Context(), []domain.MemberSpec{s.next}))
	s.proxy.Reset()
	done := make(chan error, 1)
	go func() { done <- s.e.Start(ctx, s.next.Group, s.next.Run) }()
	return done
}

// wantWait returns once the start waits for tasks to end.
func (s *succession) wantWait(done <-chan error) {
	s.Helper()
	acctest.Eventually(s, "the tasks to be polled", func() bool {
		polls := 0
		for _, call := range s.proxy.Calls() {
			if call.Path == "/tasks" {
				polls++
			}
		}
		return polls > 3 || len(done) > 0
	})
	if len(done) > 0 {
		s.Fatalf("the successor was started beside the member: %v", <-done)
	}
}

// instances returns the IDs of the member's running containers.
func (s *succession) instances() (ids []string) {
	s.Helper()
	for _, node := range s.bed.Nodes {
		running, err := node.Client().ContainerList(s.Context(), container.ListOptions{
			Filters: filters.NewArgs(filters.Arg("label", "trainyard.member="+s.next.Name)),
		})
		must(s.T, err)
		for _, c := range running {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// drain drains the member's host, and returns once the member is to end.
func (s *succession) drain() {
	s.Helper()
	cluster, err := engine.Cluster(s.Context(), s.e)
	must(s.T, err)
	acctest.EventuallyNoError(s, "the host to drain", func() error { // the Swarm may change it meanwhile
		node, _, err := s.docker.NodeInspectWithRaw(s.Context(), cluster.Spec.Hosts[declared(s.bed.Nodes[1])].ID)
		if err != nil {
			return err
		}
		node.Spec.Availability = dockerswarm.NodeAvailabilityDrain
		return s.docker.NodeUpdate(s.Context(), node.ID, node.Version, node.Spec)
	})
	acctest.Eventually(s, "the member to be told to end", func() bool {
		tasks, err := s.docker.TaskList(s.Context(), dockerswarm.TaskListOptions{
			Filters: filters.NewArgs(filters.Arg("service", s.next.Name)),
		})
		must(s.T, err)
		return len(tasks) == 1 && tasks[0].DesiredState == dockerswarm.TaskStateShutdown
	})
}
