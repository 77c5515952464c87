//go:build linux

package swarm_test

import (
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
)

// renewing reports whether a call to an engine renews a lock, which happens over time.
var renewing = testbed.Matching(http.MethodPost, "/configs/*/update")

// writing reports whether a call to an engine may change something other than a lock.
func writing(call testbed.Call) bool {
	return call.Method != http.MethodGet && call.Method != http.MethodHead && !renewing(call)
}

// noting records that an action was taken.
func noting(taken *atomic.Bool, action testbed.Action) testbed.Action {
	return func(next http.Handler) http.Handler {
		taken.Store(true)
		return action(next)
	}
}

// mishaps are the faults that calls to an engine meet with.
var mishaps = []struct {
	name string
	do   testbed.Action
	// harmless reports whether the apply succeeds anyway.
	harmless bool
}{
	{name: "fails", do: testbed.Fail("no space left on device")},
	{name: "is lost", do: testbed.Drop()},
	{name: "loses its answer", do: testbed.DropAnswer()},
	{name: "takes a second", do: testbed.Delay(time.Second), harmless: true},
}

// A single writing call meets with a fault, each in turn in the first apply of a cluster, and of a group. Whatever the
// result, the next apply succeeds, and a destroy leaves nothing.
func TestAccSwarmCallFails(t *testing.T) {
	acceptance.Test(t)
	acceptance.Requires(t, acceptance.WriteOnlyAttributes)
	bed := sharedBed(t)
	stands := newSwarmWorkspace(newSwarmLab(t, bed, "faulty"))
	stands.configure(stands.cluster(""))
	stands.Must("apply", "-auto-approve")
	t.Run("of a", func(t *testing.T) {
		for _, c := range []struct {
			what string
			// writes is how many writes an apply makes, or more if it has to wait for a lock.
			writes int
			// fail says which of them meet with a fault.
			fail iter.Seq[int]
			make func(
				t *testing.T, proxy *testbed.Proxy, name string,
			) (l *swarmLab, config string, members int, gone func())
		}{
			{"cluster", 5, acctest.Kills(2, 3),
				func(t *testing.T, proxy *testbed.Proxy, name string) (*swarmLab, string, int, func()) {
					l := newSwarmLab(t, bed, name)
					return l, strings.Replace(l.cluster(""), bed.Nodes[0].Host(), proxy.Host(), 1), 0, l.expectNothing
				}},
			{"group", 13, acctest.Kills(5, 12),
				func(t *testing.T, proxy *testbed.Proxy, name string) (*swarmLab, string, int, func()) {
					l := *stands.swarmLab
					l.T = t
					return &l, l.lodger(proxy.Host(), name, workers(2, "file:/etc/setting", "wait")+`
  container = {
    configs = { setting = { content = "1", target = "/etc/setting" } }
    secrets = { token = { value = "hidden", version = "1" } }
  }`), 2, func() { l.expectNoTrace(name) }
				}},
		} {
			for k := range c.fail {
				if k > c.writes {
					break
				}
				mishap := mishaps[k%len(mishaps)]
				t.Run(fmt.Sprintf("%s write %d %s", c.what, k, mishap.name), func(t *testing.T) {
					t.Parallel()
					proxy := testbed.NewProxy(t, bed.Nodes[0])
					name := fmt.Sprintf("%s-write-%d", c.what, k)
					l, config, members, gone := c.make(t, proxy, name)
					w := newSwarmWorkspace(l)
					w.configure(config)

					var met atomic.Bool
					proxy.On(testbed.Fault{Match: writing, Nth: k, Do: noting(&met, mishap.do)})
					output, err := w.Run("apply", "-auto-approve")
					writes := slices.DeleteFunc(proxy.Calls(), func(call testbed.Call) bool { return !writing(call) })
					proxy.Reset()
					switch {
					case !met.Load():
						t.Errorf("an apply makes %d writes, want %d: %v", len(writes), c.writes, writes)
					case err != nil && mishap.harmless:
						t.Errorf("the apply failed: %v\n%s", err, output)
					}
					w.Must("apply", "-auto-approve")
					w.ExpectNoChange("after the next apply")
					if n := l.running(name); n != members {
						t.Errorf("%d members run, want %d", n, members)
					}
					w.Must("destroy", "-auto-approve")
					gone()
				})
			}
		}
	})
}
