//go:build linux

package systemd_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/relay"
)

// as returns the test with another machine of the bed as a host of the cluster.
func (f faulty) as(name string, machine int) faulty {
	f.Helper()
	to := specOn(f.bed, f.spec.Name).Hosts[f.host(machine).Name]
	to.Role = f.spec.Hosts[name].Role
	f.spec.Hosts = maps.Clone(f.spec.Hosts)
	f.spec.Hosts[name] = to
	f.Engine = f.open(0, f.provider)
	return f
}

// TestHostReplaced: a host can become another machine: the former one is cleaned first. The store host can't, unless
// another one was promoted.
func TestHostReplaced(t *testing.T) {
	f := newHosts(t)
	f.spec = f.without(2)
	f.form(f.spec)
	g := f.group("job", []int{0, 1}, "wait")
	f.update(g)
	runsOn := func(first, second string) {
		t.Helper()
		f.update(g)
		found := f.running("job", 2)
		if strings.Join(found["job-on1-0"], " ") != first || strings.Join(found["job-on2-0"], " ") != second {
			t.Errorf("there run %v, not on %s and %s", found, first, second)
		}
		f.tally.lookAt(found)
	}

	f = f.as("host2", 2)
	f.form(f.spec)
	f.cleaned(1)
	runsOn("host1", "host3")

	moved := f.as("host1", 1)
	back := "set it back to " + f.spec.Hosts["host1"].Address
	if err := formed(f.bounded(), moved.Engine, moved.spec); err == nil || !strings.Contains(err.Error(), back) {
		t.Errorf("a plan with another machine as the store host: %v", err)
	}
	if _, err := moved.Form(f.bounded(), moved.spec); err == nil || !strings.Contains(err.Error(), back) {
		t.Errorf("another machine as the store host: %v", err)
	}
	renamed := f.without(0)
	renamed.Hosts["other"] = f.spec.Hosts["host1"]
	if _, err := f.Form(f.bounded(), renamed); err == nil || !strings.Contains(err.Error(), ": before you remove it") {
		t.Errorf("another name for the store host: %v", err)
	}
	f.cleaned(1)
	runsOn("host1", "host3")

	f.suffers(0, powerCut)
	f = f.as("host1", 1)
	err := formed(f.bounded(), f.Engine, f.spec)
	if err == nil {
		t.Fatal("another machine as the store host, which is down, is no error")
	}
	f.runs(err, "promote")
	f.Engine = f.open(0, f.provider)
	if err = formed(f.bounded(), f.Engine, f.spec); err == nil {
		t.Fatal("another machine for a host that is down is no error")
	}
	f.runs(err, "forget")
	f.Engine = f.open(0, f.provider)
	f.form(f.spec)
	f.eventually("the controller to reach the host", func() bool { return !f.away(0) })
	f.must(f.host(0).Start(f.bounded()))
	_, err = relay.Leave.Ask(f.bounded(), f.relayOn(0), f.spec.Name, relay.None{}) // nobody knows that machine any more
	f.must(err)
	runsOn("host2", "host3")
	f.finish()
}
