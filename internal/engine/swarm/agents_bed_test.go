//go:build linux

package swarm

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/swarmtest"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// TestMemberPosesAsAgent: a member whose image has an agent's labels isn't asked in the agent's place.
func TestMemberPosesAsAgent(t *testing.T) {
	t.Parallel()
	s := newStanding(t, testbed.Shared(t, swarmtest.Three), "posing")
	const name = "posing/member:1"
	loadPrograms(t, s.bed, name, v1.Config{
		Entrypoint: []string{"/member"},
		Labels:     map[string]string{spec.LabelCluster: s.name, spec.LabelKind: spec.KindAgent},
	}, map[string]string{"/member": acctest.Member})

	manager := s.bed.Nodes[0] // the only host whose address is known, so it needs an agent
	e := s.open(manager.Host())
	r := reconcile.Reconciler{Engine: e}
	_, err := r.AwaitResidents(acctest.Bounded(t))
	must(t, err)
	group, _ := s.group("job")
	group.Template = domain.Template{Image: name, Args: []string{"wait"}}
	group.Roles = map[string]domain.Role{
		"worker": {Replicas: new(1), Placement: domain.Placement{Hosts: []string{manager.Name}}},
	}
	start := time.Now()
	must(t, r.Update(acctest.Bounded(t), group))
	t.Cleanup(func() { must(t, r.Destroy(acctest.Bounded(t), group.Name)) })

	if u := s.usage(e, manager).Hosts[manager.Name]; u.MemoryMiB.P95 == nil {
		t.Errorf("the host isn't known beside a member that poses as an agent: %+v", u)
	}
	members, err := manager.Client().ContainerList(t.Context(), container.ListOptions{Filters: filters.NewArgs(
		filters.Arg("label", spec.LabelCluster+"="+s.name), filters.Arg("label", spec.LabelGroup+"="+group.Name),
		filters.Arg("label", spec.LabelKind+"="+spec.KindAgent),
	)})
	must(t, err)
	if len(members) != 1 {
		t.Fatalf("%d members with an agent's labels run beside the agent, want 1", len(members))
	}
	if run := execsIn(t, manager, members[0].ID, start); len(run) > 0 {
		t.Errorf("%q was run in the member", run)
	}
}

// usage returns what is used, over a minute, once the agent of a node reports: it may be too busy to answer.
func (s *standing) usage(e *Engine, node *testbed.Node) (usage engine.Usage) {
	s.Helper()
	why := ""
	defer func() {
		if why != "" {
			s.Logf("nothing is known of %s: %s", node.Name, why)
		}
	}()
	acctest.Eventually(s, "the agent of "+node.Name+" to report", func() bool {
		var err error
		usage, err = e.Usage(s.Context(), time.Minute)
		must(s.T, err)
		why = usage.Hosts[node.Name].Reason
		return why == ""
	})
	return usage
}

// execsIn returns what was run in a node's container since a time.
func execsIn(t *testing.T, node *testbed.Node, id string, since time.Time) (commands []string) {
	t.Helper()
	messages, errs := node.Client().Events(t.Context(), events.ListOptions{
		Since:   since.Add(-time.Minute).Format(time.RFC3339Nano),
		Until:   time.Now().Add(time.Second).Format(time.RFC3339Nano),
		Filters: filters.NewArgs(filters.Arg("container", id), filters.Arg("type", string(events.ContainerEventType))),
	})
	for {
		select {
		case message := <-messages:
			commands = append(commands, string(message.Action))
		case err := <-errs:
			if !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			commands = slices.DeleteFunc(commands,
				func(action string) bool { return !strings.HasPrefix(action, "exec_start") })
			return slices.Compact(commands)
		}
	}
}
