//go:build linux

package process_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// killed is a workspace with a group of workers, in which the provider or Terraform is killed.
type killed struct {
	*acctest.Workspace
	member string
	port   int
}

func newKilled(t *testing.T) killed {
	t.Helper()
	acceptance.Test(t)
	workspace := acctest.NewWorkspace(t, acctest.Build(t, acctest.Mortal))
	return killed{workspace, acctest.Build(t, acctest.Member), freePorts(t)}
}

// configure writes a configuration with a group of this many workers that take these steps.
func (k killed) configure(workers int, steps ...string) {
	k.Helper()
	k.write(fmt.Sprintf(`
resource "trainyard_group" "job" {
  cluster = trainyard_cluster.lab
  name    = "job"
  command = %s
  roles   = { worker = { replicas = %d, port = %d } }
}
`, k.command(steps...), workers, k.port))
}

// write writes a configuration with the cluster and these resources.
func (k killed) write(resources string) {
	k.Helper()
	k.Write("main.tf", `
terraform {
  required_providers {
    trainyard = { source = "trainyard/trainyard" }
  }
}
resource "trainyard_cluster" "lab" {
  name = "lab"
}
`+resources)
}

// command returns the command of members that take these steps, for a configuration.
func (k killed) command(steps ...string) string {
	return acceptance.List(append([]string{k.member}, steps...)...)
}

// expect fails unless the group is as configured: a plan is empty, and every member runs once.
func (k killed) expect(workers int, when string) {
	k.Helper()
	k.ExpectNoChange(when)
	acctest.Eventually(k, fmt.Sprintf("%d members %s", workers, when), func() bool {
		return acctest.Alive(k, k.StateDir, k.member) == workers
	})
}

// tooManyChanges limits the number of changes after which the provider is killed.
const tooManyChanges = 100

// TestProviderKilled kills the provider after changes of an apply, and shows that the next apply succeeds, with no
// member missing, duplicated or left over.
func TestProviderKilled(t *testing.T) {
	t.Run("create", func(t *testing.T) {
		k := newKilled(t)
		k.configure(3, "wait")
		k.dieAfter(acctest.Kills(10), 3, func() {}, "apply", "-auto-approve")
	})
	t.Run("grow and change", func(t *testing.T) {
		k := newKilled(t)
		k.dieAfter(acctest.Kills(8), 3, func() {
			k.configure(2, "wait")
			k.Must("apply", "-auto-approve")
			k.configure(3, "print:changed", "wait")
		}, "apply", "-auto-approve")
	})
	t.Run("destroy", func(t *testing.T) {
		k := newKilled(t)
		k.configure(3, "wait")
		k.dieAfter(acctest.Kills(2), 3, func() { k.Must("apply", "-auto-approve") }, "destroy", "-auto-approve")
	})
}

// TestFilesProviderKilled kills the provider after changes of an apply of files that workers run from.
func TestFilesProviderKilled(t *testing.T) {
	configure := func(k killed, says string) {
		k.Helper()
		if err := os.MkdirAll(filepath.Join(k.Dir, "train"), 0o700); err != nil {
			k.Fatal(err)
		}
		k.Write("train/run.sh", "echo "+says+"\nexec \"$@\"\n")
		k.write(fmt.Sprintf(`
resource "trainyard_files" "code" {
  cluster = trainyard_cluster.lab
  name    = "code"
  source  = "${path.module}/train"
}
resource "trainyard_group" "job" {
  cluster = trainyard_cluster.lab
  name    = "job"
  command = ["/bin/sh", "${trainyard_files.code.path}/run.sh", %q, "wait"]
  roles   = { worker = { replicas = 2 } }
}
`, k.member))
	}
	t.Run("create", func(t *testing.T) {
		k := newKilled(t)
		configure(k, "one")
		k.dieAfter(acctest.Kills(8), 2, func() {}, "apply", "-auto-approve")
	})
	t.Run("change", func(t *testing.T) {
		k := newKilled(t)
		k.dieAfter(acctest.Kills(5), 2, func() {
			configure(k, "one")
			k.Must("apply", "-auto-approve")
			configure(k, "two")
		}, "apply", "-auto-approve")
	})
	t.Run("destroy", func(t *testing.T) {
		k := newKilled(t)
		configure(k, "one")
		k.dieAfter(acctest.Kills(5), 2, func() { k.Must("apply", "-auto-approve") }, "destroy", "-auto-approve")
	})
}

// configureSweep writes a configuration with a sweep of this many runs that take these steps.
func (k killed) configureSweep(runs int, steps ...string) {
	k.Helper()
	k.write(fmt.Sprintf(`
resource "trainyard_sweep" "lr" {
  cluster      = trainyard_cluster.lab
  name         = "lr"
  command      = %s
  runs         = { for i in range(%d) : "run-${i}" => { I = i } }
  max_parallel = 10
}
`, k.command(steps...), runs))
}

// TestSweepProviderKilled kills the provider after changes of an apply of a sweep, as TestProviderKilled does.
func TestSweepProviderKilled(t *testing.T) {
	t.Run("create", func(t *testing.T) {
		k := newKilled(t)
		k.configureSweep(3, "wait")
		k.dieAfter(acctest.Kills(6), 3, func() {}, "apply", "-auto-approve")
	})
	t.Run("grow and change", func(t *testing.T) {
		k := newKilled(t)
		k.dieAfter(acctest.Kills(5), 3, func() {
			k.configureSweep(2, "wait")
			k.Must("apply", "-auto-approve")
			k.configureSweep(3, "print:changed", "wait")
		}, "apply", "-auto-approve")
	})
	t.Run("destroy", func(t *testing.T) {
		k := newKilled(t)
		k.configureSweep(3, "wait")
		k.dieAfter(acctest.Kills(2), 3, func() { k.Must("apply", "-auto-approve") }, "destroy", "-auto-approve")
	})
}

// dieAfter calls prepare, runs Terraform with a provider that dies after a number of changes, and then with one that
// does not. It stops after the first that survives.
func (k killed) dieAfter(changes iter.Seq[int], workers int, prepare func(), args ...string) {
	k.Helper()
	for last := range changes {
		if last > tooManyChanges {
			k.Fatalf("terraform %s makes more than %d changes", args[0], tooManyChanges)
		}
		prepare()
		survived := k.DieAfter(last, args...)
		calls := k.Calls()
		when := fmt.Sprintf("after a death after change %d (%s)", last, calls[len(calls)-1])
		if args[0] == "apply" {
			k.Must("apply", "-auto-approve")
			k.expect(workers, when)
		}
		k.Must("destroy", "-auto-approve")
		k.ExpectNobody(when)
		k.Logf("%s: 0 orphans %s of: %s", args[0], when, strings.Join(calls, " "))
		if survived {
			k.expectDeaths(calls)
			return
		}
	}
}

// expectDeaths fails if the provider was to die once, after more changes than it made.
func (k killed) expectDeaths(made []string) {
	k.Helper()
	if !acctest.AllKills() {
		k.Errorf("nobody died: the provider made only the changes %q", made)
	}
}

// TestTerraformKilled kills Terraform itself at different moments of an apply, and with it its provider.
func TestTerraformKilled(t *testing.T) {
	k := newKilled(t)
	k.configure(3, "wait")
	start := time.Now()
	k.Must("apply", "-auto-approve")
	duration := time.Since(start)
	k.Must("destroy", "-auto-approve")

	const moments = 12
	for i := range acctest.Kills(4, 8) {
		if i > moments {
			break
		}
		ctx, cancel := context.WithCancel(t.Context())
		command := k.Command(ctx, nil, "apply", "-auto-approve")
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		after := duration * time.Duration(i) / (moments + 1)
		timer := time.AfterFunc(after, cancel) // kills it
		err := command.Wait()
		timer.Stop()
		cancel()
		when := fmt.Sprintf("after Terraform was killed %s into an apply of %s", after.Round(time.Millisecond),
			duration.Round(time.Millisecond))
		// If it ended just before it was killed, it has the context's error.
		if err != nil && !errors.Is(err, context.Canceled) && !acctest.Interrupted(err, syscall.SIGKILL) {
			t.Errorf("%s: %v", when, err)
		}
		// Its provider is about to end, and may hold the lock until then.
		acctest.Eventually(t, "the next apply to get the lock", func() bool {
			output, err := k.Run("apply", "-auto-approve")
			if err != nil && !strings.Contains(output, "locked by") {
				t.Fatalf("%s: %v\n%s", when, err, output)
			}
			return err == nil
		})
		k.expect(3, when)
		k.Must("destroy", "-auto-approve")
		k.ExpectNobody(when)
	}
}
