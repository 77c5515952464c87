//go:build linux

package process_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
	"github.com/trainyard/terraform-provider-trainyard/internal/sweep"
)

// leaves returns the configuration of a sweep with these attributes whose runs leave a line each, with their configs.
func leaves(configs map[string]string, attributes string) string {
	var runs, files strings.Builder
	for key, config := range configs {
		fmt.Fprintf(&runs, "    %q = {}\n", key)
		fmt.Fprintf(&files, "    %q = %q\n", key, config)
	}
	return fmt.Sprintf(`
resource "trainyard_sweep" "lr" {
  cluster  = trainyard_cluster.lab
  name     = "lr"
  command  = [local.member, "config", "results:{{ .Role }} leaves this"]
  wait_for = "completed"
  runs     = {
%s  }
  config   = {
%s  }
  %s
}
`, &runs, &files, attributes)
}

// Results outlive their runs and can be downloaded; only results that are gone are planned and produced again; a
// destroy keeps them and says where they are, or deletes them.
func TestAccSweepResults(t *testing.T) {
	w, l := newWorkspace(t)
	const kept = `results = { path = "results" }`
	configs := map[string]string{"a": `{"lr":1}`, "b": "lr: 2"}
	l.configure(w, theCluster, leaves(configs, kept), acceptance.ReadRuns,
		`output "a" { value = data.trainyard_sweep.lr.runs["a"].results }`)
	folder := func(key string) string { return filepath.Join(l.files.WorkDir("lr-"+key+"-0"), "results") }
	acceptance.ExpectSaid(t, w.Must("apply", "-auto-approve"), `a = "`+folder("a")+`"`)
	w.ExpectNoChange("once the runs have ended")
	left := map[string]string{
		"a/lines": "a leaves this\n", "a/config.json": `{"lr":1}`, "b/lines": "b leaves this\n", "b/config": "lr: 2",
	}
	l.must(acceptance.Differences(left, acceptance.Fetched(t, "lr", "--endpoint", l.files.Root)))
	l.must(acceptance.Differences(map[string]string{"b/lines": left["b/lines"], "b/config": left["b/config"]},
		acceptance.Fetched(t, "lr/b", "--endpoint", l.files.Root)))

	l.must(os.RemoveAll(folder("b")))
	plan := w.Must("plan")
	acceptance.ExpectSaid(t, plan, `+ "b" =`, `Sweep "lr": results are gone`, "these runs start anew: b.",
		`Sweep "lr": 1 run starts anew`)
	if strings.Contains(plan, `+ "a" =`) {
		t.Errorf("the plan adds a run whose results are there:\n%s", plan)
	}
	w.Must("apply", "-auto-approve")
	w.ExpectNoChange("once the results are there again")
	l.must(acceptance.Differences(left, acceptance.Fetched(t, "lr", "--endpoint", l.files.Root)))

	configs["a"] = `{"lr":3}`
	l.configure(w, theCluster, leaves(configs, kept))
	acceptance.ExpectSaid(t, w.Must("apply", "-auto-approve"), `Sweep "lr": 1 run starts anew`)
	// its folder is as the first attempt left it
	left["a/config.json"], left["a/lines"] = `{"lr":3}`, "a leaves this\na leaves this\n"
	l.must(acceptance.Differences(left, acceptance.Fetched(t, "lr", "--endpoint", l.files.Root)))

	// A run that is removed together with its results leaves nothing for Terraform to compare.
	delete(configs, "b")
	l.configure(w, theCluster, leaves(configs, kept))
	l.must(os.RemoveAll(folder("b")))
	w.Must("apply", "-auto-approve")
	l.must(acceptance.Differences(map[string]int{"a": 1}, l.attemptsOf()))

	acceptance.ExpectSaid(t, w.Must("destroy", "-auto-approve"), `Results of sweep "lr" are kept`,
		folder("a")+" on host local")
	_, err := os.Stat(filepath.Join(folder("a"), "lines"))
	l.must(err)
	l.configure(w, theCluster, leaves(configs, `results = { path = "results", on_destroy = "delete" }`))
	w.Must("apply", "-auto-approve")
	if output := w.Must("destroy", "-auto-approve"); strings.Contains(output, "are kept") {
		t.Errorf("results that go are said to be kept:\n%s", output)
	}
	if there, err := os.Stat(l.files.WorkDir("lr-a-0")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of a run is left: %v, %v", there, err)
	}
}

// Before a destroy deletes results, it collects them, including those of a run that it has to end. If it can't, nothing
// is lost, and the next destroy does.
func TestAccSweepResultsCollected(t *testing.T) {
	w, l := newWorkspace(t)
	folder := filepath.Join(t.TempDir(), "a file", "results")
	l.must(os.WriteFile(filepath.Dir(folder), nil, 0o600))
	runs := fmt.Sprintf(`
resource "trainyard_sweep" "lr" {
  cluster = trainyard_cluster.lab
  name    = "lr"
  command = [local.member, "results:{{ .Role }} leaves this", "{{ .Env.STEP }}"]
  runs    = { done = { STEP = "exit:0" }, on = { STEP = "wait" } }
  results = { path = "results", on_destroy = "delete", collect_to = %q }
}`, folder)
	l.configure(w, theCluster, runs)
	w.Must("apply", "-auto-approve")
	l.swept("one run to have ended, and one to be on", func(_ reconcile.Sweep, s sweep.Summary) bool {
		return s.Counts[domain.RunSucceeded] == 1 && s.Counts[domain.RunRunning] == 1
	})
	left := filepath.Join(l.files.WorkDir("lr-on-0"), "results", "lines")
	acctest.Eventually(t, "the run that is on to leave something",
		func() bool { _, err := os.Stat(left); return err == nil })
	w.ExpectNoChange("while a run is on")

	acceptance.Refuses(w, acceptance.Says(`results.collect_to of sweep "lr"`, "not a directory"), "destroy",
		"-auto-approve")
	if _, err := os.Stat(left); err != nil {
		t.Fatalf("results that were not collected are gone: %v", err)
	}
	l.must(os.Remove(filepath.Dir(folder)))
	acceptance.ExpectSaid(t, w.Must("destroy", "-auto-approve"), `Results of sweep "lr" collected`,
		"The results of 2 of its 2 runs are in "+folder)
	archives, err := filepath.Glob(filepath.Join(folder, "lab-lr-*.tar"))
	if err != nil || len(archives) != 1 {
		t.Fatalf("%q, %v: want one archive", archives, err)
	}
	l.must(acceptance.Differences(map[string]string{"done/lines": "done leaves this\n", "on/lines": "on leaves this\n"},
		acceptance.Archived(t, archives[0])))
	for _, key := range []string{"done", "on"} {
		if there, err := os.Stat(l.files.WorkDir("lr-" + key + "-0")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the folder of run %s is left: %v, %v", key, there, err)
		}
	}
}

// If a destroy could not collect results, and an apply follows instead of another destroy, the results still exist.
func TestAccSweepResultsNotCollected(t *testing.T) {
	w, l := newWorkspace(t)
	folder := filepath.Join(t.TempDir(), "file")
	l.must(os.WriteFile(folder, nil, 0o600))
	config := leaves(map[string]string{"a": "1"},
		fmt.Sprintf(`results = { path = "results", on_destroy = "delete", collect_to = %q }`, folder))
	l.configure(w, theCluster, config)
	w.Must("apply", "-auto-approve")
	acceptance.Refuses(w, acceptance.Says(`results.collect_to of sweep "lr"`), "destroy", "-auto-approve",
		"-target=trainyard_sweep.lr")
	w.Must("apply", "-auto-approve")
	text, err := os.ReadFile(filepath.Join(l.files.WorkDir("lr-a-0"), "results", "lines"))
	if err != nil || string(text) != "a leaves this\na leaves this\n" {
		t.Errorf("the results are %q, %v; want those of both times", text, err)
	}
	l.must(os.Remove(folder))
}

// If all results are gone, all runs restart; with an absolute path, each run has a folder in it.
func TestAccSweepResultsElsewhere(t *testing.T) {
	l := newLab(t)
	shared := filepath.Join(t.TempDir(), "shared")
	config := l.config(theCluster,
		leaves(map[string]string{"a": "1", "b": "2"}, fmt.Sprintf("results = { path = %q }", shared)))
	lines := func(want int) resource.TestCheckFunc {
		return checked(func() error {
			for _, key := range []string{"a", "b"} {
				text, err := os.ReadFile(filepath.Join(shared, "lr", key, "lines"))
				if n := strings.Count(string(text), "\n"); err != nil || n != want {
					return fmt.Errorf("run %s has left %d lines, want %d: %w", key, n, want, err)
				}
			}
			return nil
		})
	}
	l.test(
		resource.TestStep{Config: config, Check: lines(1)},
		resource.TestStep{PreConfig: func() { l.must(os.RemoveAll(shared)) }, Config: config, Check: lines(1)},
		resource.TestStep{
			Config:      l.config(theCluster, leaves(map[string]string{"a": "1"}, `results = { path = "../out" }`)),
			ExpectError: acceptance.Says(`"../out" is not below the run's own folder`),
		},
		resource.TestStep{Config: config, Check: l.attempts(map[string]int{"a": 1, "b": 1})},
	)
}
