//go:build linux

package swarm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// A member that is killed is restarted by its rule, with a delay that doubles, until its attempts are used up; then the
// apply that waits for it reports the failure.
func TestAccSwarmMemberIsKilled(t *testing.T) {
	acceptance.Test(t)
	const delay = 500 * time.Millisecond
	l := newSwarmLab(t, sharedBed(t), "fragile")
	w := newSwarmWorkspace(l)
	w.configure(l.cluster(""), l.group(fmt.Sprintf(`
  image    = %q
  args     = ["print:at work", "wait"]
  roles    = { worker = { replicas = 1, restart = { max_attempts = 2, delay = %q } } }
  wait_for = "completed"`, memberImage, delay)))
	wait := w.background("apply", "-auto-approve")
	defer func() { _, _ = wait() }()
	var killed time.Time
	for restarts := range 3 {
		var o domain.Observed
		l.await(l.bed.Nodes[0], fmt.Sprintf("restart %d", restarts), func(group reconcile.Group) bool {
			if len(group.Observed) != 1 {
				return false
			}
			o = group.Observed[0]
			return o.State == domain.StateRunning && o.Restarts == restarts
		})
		if took := o.StartedAt.Sub(killed); restarts > 0 && took < delay<<restarts/2 {
			t.Errorf("restart %d came %s after the end, with a delay of %s that doubles", restarts, took, delay)
		}
		// It runs for a moment before it prints anything.
		acctest.Eventually(t, "the member to say that it is at work", func() bool {
			lines, err := l.engine().Logs(t.Context(), l.member("worker", 0), engine.LogOptions{})
			return err == nil && len(lines) > restarts
		})
		killed = time.Now()
		l.killMember(l.member("worker", 0))
	}
	output, err := wait()
	if err == nil || !acceptance.Says("member fragile-worker-0 on host node",
		"exit code 137 (signal 9), after 2 restarts", "Its last log lines:", "at work").MatchString(output) {
		t.Errorf("the apply: %v\n%s", err, output)
	}
	// A final exit code is not retried.
	w.configure(l.cluster(""), l.group(fmt.Sprintf(`
  image    = %q
  args     = ["print:no data here", "exit:3"]
  roles    = { worker = { replicas = 1, exit_codes = { final = ["3"] } } }
  wait_for = "completed"`, memberImage)))
	acceptance.Refuses(w.Workspace, acceptance.Says("member fragile-worker-0 on host node",
		"exit code 3, which is final", "Its last log lines:", "no data here"), "apply", "-auto-approve")
	w.configure(l.cluster(""), l.group(fmt.Sprintf(`
  image    = %q
  args     = ["exit:0"]
  roles    = { worker = { replicas = 1 } }
  wait_for = "completed"`, memberImage)))
	w.Must("apply", "-auto-approve")
	w.ExpectNoChange("after the end")
}

// killMember kills a member's processes.
func (l *swarmLab) killMember(member string) {
	l.Helper()
	for _, node := range l.bed.Nodes {
		found, err := node.Client().ContainerList(l.Context(),
			container.ListOptions{Filters: filters.NewArgs(filters.Arg("label", "trainyard.member="+member))})
		l.must(err)
		for _, c := range found {
			l.must(node.Client().ContainerKill(l.Context(), c.ID, "KILL"))
			return
		}
	}
	l.Fatalf("no container of %s runs", member)
}

// An apply fails at once if a host can't create a member's container, but the controller tries again by the member's
// rule: whatever is missing may come.
func TestAccSwarmMemberIsRejected(t *testing.T) {
	acceptance.Test(t)
	l := newSwarmLab(t, sharedBed(t), "rejected")
	w := newSwarmWorkspace(l)
	folder := filepath.Join(t.TempDir(), "data")
	w.configure(l.cluster(""), l.group(fmt.Sprintf(`
  image    = %q
  args     = ["wait"]
  roles    = { worker = { replicas = 1, mounts = [{ source = %q, target = "/data" }] } }
  wait_for = "running"`, memberImage, folder)))
	refusal := acceptance.Says("could not be started", "bind source path does not exist", folder)
	acceptance.Refuses(w.Workspace, refusal, "apply", "-auto-approve")
	l.must(os.Mkdir(folder, 0o755))
	l.await(l.bed.Nodes[0], "the member to run", runsOn(1))
}
