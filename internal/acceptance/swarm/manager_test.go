//go:build linux

package swarm_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
)

// A manager that answers with errors, hangs up, or does not answer never makes the state lose anything: plans fail, and
// succeed again when it recovers.
func TestAccSwarmManagerFails(t *testing.T) {
	acceptance.Test(t)
	l := newSwarmLab(t, sharedBed(t), "failing")
	proxy := testbed.NewProxy(t, l.bed.Nodes[0])
	w := newSwarmWorkspace(l)
	w.configure(strings.Replace(l.cluster(""), l.bed.Nodes[0].Host(), proxy.Host(), 1), l.group(`
  image    = "`+memberImage+`"
  args     = ["wait"]
  timeouts = { create = "10m" }
  roles    = { worker = { replicas = 2 } }`))
	w.Must("apply", "-auto-approve")
	l.seen = l.tasks()
	type fault struct {
		what    string
		match   func(testbed.Call) bool
		do      testbed.Action
		run     []string
		message string
	}
	asks := func(call testbed.Call) bool { return call.Path != "/_ping" }
	full, plan, refresh := testbed.Fail("rpc error: code = Unknown desc = disk full"), []string{
		"plan", "-detailed-exitcode",
	}, []string{"apply", "-refresh-only", "-auto-approve"}
	faults := []fault{
		{"answers with errors", asks, full, plan, "disk full"},
		{
			"answers a refresh with errors", asks, full, []string{"plan", "-refresh-only", "-detailed-exitcode"},
			"disk full",
		},
		{
			"finds nothing", asks, func(http.Handler) http.Handler { return http.NotFoundHandler() }, refresh,
			"404 page not found",
		},
		{"hangs up", asks, testbed.Drop(), refresh, "can't be reached"},
		{"hangs up on a destroy", asks, testbed.Drop(), []string{"destroy", "-auto-approve"}, "can't be reached"},
		{"does not answer", asks, testbed.Delay(time.Hour), plan, "no answer within 20s"},
	}
	for _, list := range []string{"/nodes", "/networks", "/services", "/configs"} {
		faults = append(faults,
			fault{"can't list " + list, testbed.Matching(http.MethodGet, list), full, refresh, "disk full"})
	}
	for _, fault := range faults {
		before, err := os.ReadFile(filepath.Join(w.Dir, "terraform.tfstate"))
		l.must(err)
		proxy.On(testbed.Fault{Match: fault.match, Nth: 1, Onwards: true, Do: fault.do})
		if code, output := w.exit(fault.run...); code != 1 || !acceptance.Says(fault.message).MatchString(output) {
			t.Errorf("a manager that %s: %v ends with %d, want an error that says %q\n%s", fault.what, fault.run, code,
				fault.message, output)
		}
		proxy.Reset()
		after, err := os.ReadFile(filepath.Join(w.Dir, "terraform.tfstate"))
		l.must(err)
		if string(before) != string(after) {
			t.Errorf("a manager that %s: the state was\n%s\nand is\n%s", fault.what, before, after)
		}
	}
	w.ExpectNoChange("when the manager is well again")
	l.must(l.changes()(nil))
}
