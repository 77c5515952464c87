package provider_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
)

// A manager that answers with errors, hangs up, or does not answer at all costs nothing of the state: plans fail, and go on when it
// is well again.
func TestAccSwarmManagerFails(t *testing.T) {
	acceptance(t)
	l := newSwarmLab(t, sharedBed(t), "failing")
	proxy := testbed.NewProxy(t, l.bed.Nodes[0])
	w := newSwarmWorkspace(l)
	w.configure(strings.Replace(l.cluster(""), l.bed.Nodes[0].Host(), proxy.Host(), 1), l.group(`
  image    = "`+memberImage+`"
  args     = ["wait"]
  timeouts = { create = "1m" }
  roles    = { worker = { replicas = 2 } }`))
	w.Must("apply", "-auto-approve")
	l.seen = l.tasks()
	asks := func(call testbed.Call) bool { return call.Path != "/_ping" }
	for _, fault := range []struct {
		what    string
		do      testbed.Action
		plan    []string
		message string
	}{
		{"answers with errors", testbed.Fail("rpc error: code = Unknown desc = disk full"), []string{"plan", "-detailed-exitcode"}, "disk full"},
		{"answers a refresh with errors", testbed.Fail("rpc error: code = Unknown desc = disk full"), []string{"plan", "-refresh-only", "-detailed-exitcode"}, "disk full"},
		{"finds nothing", func(http.Handler) http.Handler { return http.NotFoundHandler() }, []string{"plan", "-detailed-exitcode"}, "404 page not found"},
		{"hangs up", testbed.Drop(), []string{"plan", "-detailed-exitcode"}, "can't be reached"},
		{"hangs up on a destroy", testbed.Drop(), []string{"destroy", "-auto-approve"}, "can't be reached"},
		{"does not answer", testbed.Delay(time.Hour), []string{"plan", "-detailed-exitcode"}, "has not answered for 20s"},
	} {
		before, err := os.ReadFile(filepath.Join(w.Dir, "terraform.tfstate"))
		l.must(err)
		proxy.On(testbed.Fault{Match: asks, Nth: 1, Onwards: true, Do: fault.do})
		if code, output := w.exit(fault.plan...); code != 1 || !says(fault.message).MatchString(output) {
			t.Errorf("a manager that %s: %v ends with %d, want an error that says %q\n%s", fault.what, fault.plan, code, fault.message, output)
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
