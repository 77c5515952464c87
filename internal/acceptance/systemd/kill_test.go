//go:build linux

package systemd_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// deadly is a run of Terraform in which the provider is killed.
type deadly struct {
	*lab
	*acctest.Workspace
}

// The provider is killed after changes of an apply, and of a destroy. Its locks expire by themselves, and then the next
// run succeeds: each member was started once, and after a destroy nothing is left.
func TestAccProviderKilled(t *testing.T) {
	acceptance.Test(t)
	bed, provider, mortal := sharedBed(t), acctest.Build(t, acctest.Provider), acctest.Build(t, acctest.Mortal)
	group := "Lock, Lock, Put group, StartController, Stage, Stage, Start, Put group, Prune"
	for _, c := range []struct {
		name string
		// before is the number of workers that are first applied normally; 0 without a cluster.
		before   int
		destroys bool
		// calls are the calls of the run that change something, and kills says after which of them the provider is
		// killed.
		calls string
		kills iter.Seq[int]
	}{
		{"created", 0, false, "Form, Put cluster, StartController, Put ownership, " + group + ", Put ownership",
			acctest.Kills(1, 10)},
		{"changed", 1, false, group, acctest.Kills(7)},
		{"destroyed", 2, true,
			"Delete ownership, Lock, Remove, Remove, Prune, Delete group, Delete ownership, Dissolve", acctest.Kills(3)},
	} {
		calls := strings.Split(c.calls, ", ")
		for last := range c.kills {
			if last > len(calls)+1 {
				break
			}
			when := "nobody is killed"
			if last <= len(calls) {
				when = fmt.Sprintf("killed after change %d, %s", last, calls[last-1])
			}
			t.Run(c.name+", "+when, func(t *testing.T) {
				t.Parallel()
				d := deadly{openLab(t, bed, provider, 0, 1), acctest.NewWorkspace(t, mortal)}
				if c.before > 0 {
					d.configure("before", c.before)
					d.Must("apply", "-auto-approve")
				}
				run := []string{"destroy", "-auto-approve"}
				if !c.destroys {
					run[0] = "apply"
					d.configure("hello", 2)
				}
				survived := d.DieAfter(last, run...)
				made := d.Calls()
				if err := acceptance.Differences(calls[:min(last, len(calls))], made); err != nil {
					t.Errorf("the calls of the run: %v", err)
				}
				if !survived && slices.Contains(made, "Lock") {
					d.locked(run)
				}
				d.Must(run...)
				if !c.destroys {
					d.ExpectNoChange(when)
					d.startedOnce("hello", 2)
					d.Must("destroy", "-auto-approve")
				}
			})
		}
	}
}

// configure writes a configuration with the cluster, and a group of this many workers that print something, and wait.
func (d deadly) configure(says string, workers int) {
	d.Helper()
	d.Write("main.tf", required+d.config(d.cluster(d.hosts...), strings.ReplaceAll(waiting(workers), "hello", says)))
}

// locked repeats the run at once, which reports who holds the lock unless that has already expired, and waits until the
// lock has expired.
func (d deadly) locked(run []string) {
	d.Helper()
	dead := time.Now()
	if output, err := d.Run(run...); err != nil && !strings.Contains(output, "is locked by ") {
		d.Fatalf("a run after a death: %v\n%s", err, output)
	}
	ctx := context.WithoutCancel(d.Context())
	acctest.Eventually(d.lab, "the lock of the dead to end", func() bool {
		release, err := d.open().Lock(ctx, reconcile.GroupLock("job"),
			engine.Holder{Who: "the test", Process: os.Getpid(), Since: time.Now()})
		if _, locked := errors.AsType[*engine.LockedError](err); locked {
			return false
		}
		if !errors.Is(err, engine.ErrNotFound) { // the cluster may be gone
			d.must(err)
			d.must(release())
		}
		return true
	})
	d.Logf("the lock of the dead had ended %s later", time.Since(dead).Round(time.Second))
}

// startedOnce fails unless each worker runs once, and has printed its line once.
func (d deadly) startedOnce(says string, workers int) {
	d.Helper()
	d.must(acceptance.Differences(workers, d.running(workers, d.hosts...)))
	for i := range workers {
		member := fmt.Sprintf("job-worker-%d", i)
		line, starts := says+" from "+member, 0
		acctest.AtLeast(d.lab, 1, "lines of "+member, func() int {
			lines, err := d.open().Logs(context.WithoutCancel(d.Context()), member, engine.LogOptions{})
			d.must(err)
			starts = 0
			for _, l := range lines {
				if l == line {
					starts++
				}
			}
			return starts
		})
		if starts != 1 {
			d.Errorf("%s was started %d times", member, starts)
		}
	}
}
