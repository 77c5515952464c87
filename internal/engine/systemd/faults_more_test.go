//go:build linux

package systemd_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/layout"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// TestFullDisk: an apply to a host with a full disk says so, and loses nothing; once there is space, it succeeds.
func TestFullDisk(t *testing.T) {
	f := newHosts(t)
	f.sh(1, fmt.Sprintf("mkdir -p %[1]s && mount -t tmpfs -o size=1m none %[1]s", layout.Clusters))
	f.form(f.spec)
	g := f.group("job", everyHost, "wait")
	brief := f.group("brief", []int{1}, "until:/var/tmp/go", "exit:4")
	only := brief.Roles["on2"]
	only.Restart.Condition = domain.RestartNever
	brief.Roles["on2"] = only
	f.update(g)
	f.update(brief)

	f.sh(1, fmt.Sprintf("cat /dev/zero > %s/ballast 2>/dev/null; true", layout.Clusters))
	changed := f.group("job", everyHost, "print:changed", "wait")
	err := reconcile.Reconciler{Engine: f.Engine}.Update(f.bounded(), changed)
	t.Logf("an apply on a full disk: %v", err)
	if err == nil || !strings.Contains(err.Error(), "no space left on device") ||
		!strings.Contains(err.Error(), "host2") {
		t.Errorf("an apply on a full disk: %v", err)
	}
	f.sh(1, "touch /var/tmp/go")
	f.eventually("the end of a member", func() bool { return len(f.processes("brief")) == 0 })
	if processes := f.running("job", 3); len(processes) != 3 {
		t.Errorf("there run %v", processes)
	}

	f.sh(1, "rm "+layout.Clusters+"/ballast")
	f.eventually("the end to be known", func() bool {
		ended := f.observed(f.Engine, "brief")["brief-on2-0"]
		return ended.State == domain.StateFailed && *ended.ExitCode == 4
	})
	f.update(changed)
	f.started(changed, 2)
	if starts := f.starts("brief")["brief-on2-0"]; starts != 1 {
		t.Errorf("a member that ended on a full disk was started %d times", starts)
	}
	f.eventually("the copy to be up to date", func() bool { return f.ledger(1).Sequence == f.ledger(0).Sequence })
	for _, group := range []string{"job", "brief"} {
		f.must(reconcile.Reconciler{Engine: f.Engine}.Destroy(f.bounded(), group))
	}
	f.sh(1, "umount -l "+layout.Clusters+" && rmdir "+layout.Clusters) // it can't be removed as long as it is mounted
}

// TestUpgrade: an apply by another version replaces our programs on hosts, and no member.
func TestUpgrade(t *testing.T) {
	f := newFaulty(t)
	g := f.group("job", everyHost, "wait")
	f.update(g)
	members := fmt.Sprintf("pgrep -f '^%s wait'", f.member)
	residents := `for p in $(pgrep -f '/[^ ]* (supervise|controller|agent) .*lab( |/|$)'); do readlink /proc/$p/exe; done | sort | uniq -c`
	f.running("job", 3)
	before, ran := f.anywhere(members), f.anywhere(residents)
	aged := fmt.Sprintf("mkdir %[1]s/earlier && touch -d -2hours %[1]s/earlier", layout.Programs)
	f.anywhere(aged)
	f.Engine = f.open(0, acctest.BuildVersion(t, "9.9.9"))
	f.form(f.spec)
	after := ""
	f.eventually("the others to run", func() bool {
		after = f.anywhere(residents)
		return strings.Count(after, " 3 ") == 1 && strings.Count(after, " 2 ") == 2 &&
			len(strings.Split(after, "\n")) == 3
	})
	if old := strings.Fields(ran)[2]; strings.Contains(after, old) {
		t.Errorf("there ran %s, and there run %s", ran, after)
	}
	if running := f.anywhere(members); running != before {
		t.Errorf("the members' processes were %s, and are %s", before, running)
	}
	if left := f.anywhere("ls " + layout.Programs); strings.Contains(left, "earlier") {
		t.Errorf("programs that nobody uses are left:\n%s", left)
	}
	f.startedOnce(g)
	f.finish()
}

// without returns the cluster without one of its hosts.
func (f faulty) without(host int) domain.Cluster {
	smaller := f.spec
	smaller.Hosts = maps.Clone(f.spec.Hosts)
	delete(smaller.Hosts, f.host(host).Name)
	return smaller
}

// cleaned fails if a host has anything of the cluster.
func (f faulty) cleaned(host int) {
	f.Helper()
	alone := f
	alone.bed = &testbed.Hosts{Hosts: f.bed.Hosts[host : host+1]}
	alone.nothingLeft(f.spec.Name)
}

// away reports whether the controller has found that it can't reach a host.
func (f faulty) away(host int) bool {
	f.Helper()
	kind := domain.Kind{Name: "absent", Watched: true}
	item, err := f.Get(f.bounded(), engine.Key{Kind: kind, Name: "hosts"})
	if errors.Is(err, engine.ErrNotFound) {
		return false
	}
	f.must(err)
	return strings.Contains(string(item.Data), f.host(host).Name)
}

// TestHostJoinsAndLeaves: the controller manages a host that joins while it runs, and a host that is removed from the
// cluster keeps nothing of it.
func TestHostJoinsAndLeaves(t *testing.T) {
	f := newHosts(t)
	f.form(f.without(2))
	g := f.group("job", []int{0, 1}, "wait")
	f.update(g)
	f.form(f.spec)
	f.update(f.group("third", []int{2}, "wait"))
	f.suffers(2, powerCut)
	f.eventually("the controller to notice", func() bool { return f.away(2) })
	f.must(f.host(2).Start(f.bounded()))
	f.eventually("the controller to reach it again", func() bool { return !f.away(2) })

	f.form(f.without(2))
	f.cleaned(2)
	f.startedOnce(g)
	f.destroy("third")
	f.finish()
}

// TestHostForgotten: removing a dead host that can't be cleaned fails with advice; once forgotten, it can be removed.
// When it is back, it is cleaned like any other.
func TestHostForgotten(t *testing.T) {
	f := newFaulty(t)
	g := f.group("job", []int{0, 1}, "wait")
	moves := g.Roles["on2"]
	moves.Placement = domain.Placement{Strategy: domain.Spread}
	three := 3
	moves.Replicas = &three
	g.Roles = map[string]domain.Role{"on": moves}
	f.update(g)
	f.running("job", 3)
	f.suffers(1, powerCut)
	err := formed(f.bounded(), f.Engine, f.without(1))
	t.Logf("taken out: %v", err)
	if err == nil || !strings.Contains(err.Error(), "host host2: ") {
		t.Errorf("a dead host is taken out: %v", err)
	}
	if err := f.Forget(f.bounded(), "host3"); err == nil ||
		!strings.Contains(err.Error(), "host host3 can be reached") {
		t.Errorf("a host that is there is to be forgotten: %v", err)
	}
	if output := f.runs(err, "forget"); !strings.Contains(output, "Host host2 was removed from cluster lab") {
		t.Errorf("the command says %q", output)
	}
	f.eventually("its member to be elsewhere", func() bool {
		members := f.observed(f.Engine, "job")
		for _, o := range members {
			if o.Host == "host2" || o.State != domain.StateRunning {
				return false
			}
		}
		return len(members) == 3
	})
	f.form(f.without(1))

	f.must(f.host(1).Start(f.bounded()))
	f.Engine = f.open(0, f.provider) // the previous one may still wait for the host's old connection
	f.form(f.spec)
	var running map[string][]string
	f.eventually("the end of what is elsewhere", func() bool {
		running = f.processes("job")
		for _, hosts := range running {
			if len(hosts) != 1 || hosts[0] == "host2" {
				return false
			}
		}
		return len(running) == 3
	})
	f.tally.lookAt(running)
	f.form(f.without(1))
	f.cleaned(1)
	f.finish()
}
