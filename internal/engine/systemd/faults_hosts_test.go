//go:build linux

package systemd_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// all applies a fault to all hosts at once.
func (f faulty) all(what fault) {
	f.Helper()
	var hosts sync.WaitGroup
	for _, h := range f.bed.Hosts {
		hosts.Go(func() {
			if err := what.do(f, h); err != nil {
				f.Error(err)
			}
		})
	}
	hosts.Wait()
	f.tally.note(what.kind+" of all at once", len(f.bed.Hosts))
}

// TestAllHostsStartAnew: after a reboot or power loss of all hosts, what should run runs again, and what had ended
// stays so.
func TestAllHostsStartAnew(t *testing.T) {
	f := newFaulty(t)
	g := f.group("job", everyHost, "wait")
	f.update(g)
	ended := f.group("ended", []int{0, 1}, "exit:0")
	failing := ended.Roles["on2"]
	failing.Restart.Condition = domain.RestartNever
	failing.Args = []string{"exit:3"}
	ended.Roles["on2"] = failing
	t.Logf("a group with a member that fails: %v", reconcile.Reconciler{Engine: f.Engine}.Update(f.bounded(), ended))
	hasEnded := func() bool {
		members := f.observed(f.Engine, "ended")
		first, second := members["ended-on1-0"], members["ended-on2-0"]
		return first.State == domain.StateCompleted && *first.ExitCode == 0 &&
			second.State == domain.StateFailed && *second.ExitCode == 3
	}
	f.eventually("a completion and a failure", hasEnded)
	for i, what := range []fault{reboot, powerLoss} {
		f.all(what)
		f.eventually("the members to run again", func() bool {
			members := f.observed(f.Engine, "job")
			for _, o := range members {
				if o.State != domain.StateRunning || o.HostTrouble != "" || f.starts("job")[o.Name] < i+2 {
					return false
				}
			}
			return len(members) == len(g.Roles)
		})
		f.started(g, i+2)
		for name, o := range f.observed(f.Engine, "job") {
			if o.Restarts != 0 {
				t.Errorf("%s: it counts as %d restarts", name, o.Restarts)
			}
		}
		f.eventually("what completed or failed to be seen so", hasEnded)
		if starts := f.starts("ended"); starts["ended-on1-0"] != 1 || starts["ended-on2-0"] != 1 {
			t.Errorf("what had ended was started: %v", starts)
		}
	}
	_, err := reconcile.Reconciler{Engine: f.Engine}.AwaitResidents(f.bounded())
	f.must(err)
	f.finish()
}

// TestHostLost: the members of a host that is lost for good are placed elsewhere. If it comes back all the same, those
// that are elsewhere by then, or were removed, are ended there.
func TestHostLost(t *testing.T) {
	f := newFaulty(t)
	g := f.group("job", []int{1}, "wait")
	two, role := 2, g.Roles["on2"]
	role.Replicas, role.Placement.Hosts = &two, []string{"host2", "host3"}
	g.Roles["on2"] = role
	f.update(g)
	others := f.group("others", everyHost, "wait")
	f.update(others)
	moves := ""
	for name, o := range f.observed(f.Engine, "job") {
		if o.Host == "host2" {
			moves = name
		}
	}
	if moves == "" {
		t.Fatalf("no member is on host2: %v", f.observed(f.Engine, "job"))
	}

	t.Logf("the members are on: %v", f.running("job", 2))
	f.suffers(1, powerCut)
	lost := time.Now()
	f.must(reconcile.Reconciler{Engine: f.Engine}.Destroy(f.bounded(), "others")) // one of its members was on the host
	f.eventually("the member to be elsewhere", func() bool {
		o := f.observed(f.Engine, "job")[moves]
		return o.Host == "host3" && o.State == domain.StateRunning
	})
	t.Logf("it was elsewhere after %s", time.Since(lost).Round(time.Second))

	f.must(f.host(1).Start(f.bounded()))
	back := time.Now()
	// Its supervisor starts its members again, unless the controller was faster. It deletes a member's state last.
	left := "ls"
	for _, member := range []string{moves, "others-on2-0"} {
		left += " " + f.dir().Document(statedir.Specs, member) + " " + f.dir().Document(statedir.States, member)
	}
	f.eventually("the host to forget what is elsewhere",
		func() bool { return f.sh(1, left+" 2>/dev/null; true") == "" })
	var there map[string][]string
	f.eventually("the end of what is elsewhere", func() bool {
		there = f.processes("job")
		return slices.Equal(there[moves], []string{"host3"}) && len(f.processes("others")) == 0
	})
	t.Logf("what is elsewhere was ended after %s", time.Since(back).Round(time.Millisecond))
	if len(there) != 2 {
		t.Errorf("there run %v", there)
	}
	f.tally.lookAt(there)
	t.Logf("on all hosts together were started: %v", f.starts("job"))
	f.gone("others")
	f.finish()
}

// TestCopyCatchesUp: the copy on a host that was away while the store changed is brought up to date by the controller,
// or by the next change.
func TestCopyCatchesUp(t *testing.T) {
	f := newFaulty(t)
	g := f.group("job", []int{0}, "wait")
	missesWrites := func(command string) {
		f.suffers(2, powerCut)
		g.Triggers = map[string]string{"change": command}
		f.Engine = f.open(0, f.provider) // without a connection to the host, as its silence would delay the test
		f.update(g)
		f.must(f.host(2).Start(f.bounded()))
	}
	caughtUp := func() {
		f.eventually("the copy to be up to date", func() bool {
			own, copied := f.ledger(0), f.ledger(2)
			own.Host, copied.Host = "", ""
			// one may be replaced meanwhile
			documents := "cd " + f.dir().Path("documents") + " && { sha256sum *; true; }"
			return own == copied && f.sh(0, documents) == f.sh(2, documents)
		})
	}
	missesWrites("by the controller")
	caughtUp()
	f.Engine = f.open(0, f.provider) // the previous one may still wait for the host's old connection
	f.must(f.StopController(f.bounded()))
	f.suffers(2, powerCut)
	f.Engine = f.open(0, f.provider)
	document, err := engine.Get[domain.GroupDocument](f.bounded(), f.Engine, "job")
	f.must(err)
	document, err = engine.Put(f.bounded(), f.Engine, document)
	f.must(err)
	f.must(f.host(2).Start(f.bounded()))
	_, err = engine.Put(f.bounded(), f.open(0, f.provider), document)
	f.must(err)
	caughtUp()
	f.startedOnce(g)
	f.finish()
}

// TestTwoClusters: two clusters on the same hosts are independent of each other.
func TestTwoClusters(t *testing.T) {
	f := newHostsOf(t, 2)
	f.form(f.spec)
	other := f
	other.spec = specOn(f.bed, "lab-2")
	other.Engine = other.open(0, f.provider)
	other.form(other.spec)
	g, theirs := f.group("job", []int{0, 1}, "wait"), other.group("job", []int{0, 1}, "wait")
	f.update(g)
	other.update(theirs)
	f.running("job", 2)
	other.running("job", 2)
	other.finish()
	for i := range f.bed.Hosts {
		if starts := f.sh(i, "cat "+startsFile); strings.Count(starts, "job-on") != 2 {
			t.Errorf("members of both were started: %q", starts)
		}
	}
	processes := f.processes("job")
	if len(processes) != 2 {
		t.Errorf("there run %v", processes)
	}
	f.tally.lookAt(processes)
	f.must(reconcile.Reconciler{Engine: f.Engine}.Update(f.bounded(), g))
	f.finish()
}
