//go:build linux

package process_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// fourProcessors is this machine as a cluster with four processors for members.
const fourProcessors = `
resource "trainyard_cluster" "lab" {
  name  = "lab"
  hosts = { local = { capacity = { cpus = 4 } } }
}
`

// takesProcessors returns the configuration of a group whose members request a processor each.
func takesProcessors(name, attributes, role string) string {
	return group(name, attributes+"\n  "+waiting(`resources = { cpus = 1 }, on_scale = "none", `+role))
}

// A role fills its host, yields to a group of higher priority whose apply waits for it, fills the host again, and
// yields to a sweep.
func TestAccScalingSharesRoom(t *testing.T) {
	l := newFollowLab(t)
	busy := newDial(t, 0)
	low := takesProcessors("job", "priority = -1", "")
	fills := acceptance.FillsRoom(fmt.Sprintf(`guards = { busy = { http = { url = %q, path = "length" } } }`, busy.URL))
	urgent := func(attributes string, members int) string {
		return takesProcessors("urgent", attributes, fmt.Sprintf("replicas = %d", members))
	}
	l.apply(fourProcessors, low, fills)
	l.awaitWorkers(4)
	l.workspace.ExpectNoChange("with a full host")

	// Nobody yields to a group of equal priority, and the plan says what would help.
	expect := func(what, output string, says ...string) {
		t.Helper()
		for _, phrase := range says {
			if !acceptance.Says(phrase).MatchString(output) {
				t.Errorf("%s does not say %q:\n%s", what, phrase, output)
			}
		}
	}
	fails := func(command ...string) string {
		t.Helper()
		output, err := l.workspace.Run(command...)
		if err == nil {
			t.Fatalf("terraform %q succeeds:\n%s", command, output)
		}
		return output
	}
	l.configure(fourProcessors, low, fills, urgent("priority = -1", 2))
	expect("a plan for who is as important", fails("plan"),
		"Not enough CPUs", `role "worker" of group "job" has 4 members, and its policy needs 1`,
		"this one has -1, and would have room with 0")
	l.configure(fourProcessors, low, fills, urgent("", 4))
	expect("a plan for more than min leaves", fails("plan"), "Not enough CPUs")

	shared := acceptance.SharedRoom{
		T: t, Engine: l.engine, AwaitWorkers: l.awaitWorkers,
		Apply: func(parts ...string) string {
			l.configure(slices.Concat([]string{fourProcessors, low, fills}, parts)...)
			output := l.workspace.Must("apply", "-auto-approve")
			l.workspace.ExpectNoChange("after an apply")
			return output
		},
	}
	shared.YieldsTo(urgent("", 2))
	explained, err := exec.CommandContext(t.Context(), l.program().File, "autoscale", "explain", "-n", "0",
		"job/worker", "--endpoint", l.workspace.StateDir).CombinedOutput()
	l.must(err)
	expect("explain", string(explained), `gives way to group "urgent", with priority 0, down to 2 members`)

	// A guard keeps the members. When the apply times out, it says so, and nothing of the group exists.
	busy.value.Store(1)
	l.configure(fourProcessors, low, fills, urgent(`timeouts = { create = "10s" }`, 2))
	var output string
	keeps := acceptance.Says("but it keeps 4: 1 wanted, but the role is busy")
	acctest.Eventually(t, "the controller to say within the time of an apply why nobody gives way", func() bool {
		output = fails("apply", "-auto-approve")
		return keeps.MatchString(output)
	})
	expect("an apply that waits in vain", output, `group "urgent" waited`, "Not enough CPUs")
	if _, err := engine.Get[domain.GroupDocument](t.Context(), l.engine(),
		"urgent"); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("the group that had no room: %v", err)
	}
	l.awaitWorkers(4)

	// If an apply dies while it waits, nobody yields for it.
	l.configure(fourProcessors, low, fills, urgent("", 2))
	command := l.workspace.Command(t.Context(), nil, "apply", "-auto-approve")
	l.must(command.Start())
	acctest.Eventually(t, "the apply to wait", func() bool { return len(shared.Requests()) == 1 })
	release, err := l.engine().Lock(t.Context(), reconcile.GroupLock("urgent"),
		engine.Holder{Who: "a test", Process: os.Getpid()})
	locked, is := errors.AsType[*engine.LockedError](err)
	if !is {
		t.Fatalf("nobody holds the group: %v, %t", err, release != nil)
	}
	l.must(syscall.Kill(locked.Holder.Process, syscall.SIGKILL))
	if err := command.Wait(); err == nil {
		t.Error("the apply succeeds without its provider")
	}
	acctest.Eventually(t, "its request to be removed", func() bool { return len(shared.Requests()) == 0 })
	busy.value.Store(0)
	busy.awaitAsked(t)
	l.awaitWorkers(4)

	l.apply(fourProcessors, low, fills, urgent("", 2))
	l.awaitWorkers(2)

	// A sweep gets room for as many runs as may run at a time.
	runs := acceptance.Runs(map[string]string{"a": "wait", "b": "wait", "c": "wait"},
		"max_parallel = 1\n  resources = { cpus = 1 }")
	shared.YieldsToRun(1, urgent("", 2), runs)
	l.expectCounts(1, 4, 2, 4, 2, 1)
}
