//go:build linux

package process_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// leaves returns the configuration of a sweep whose runs leave a line each, with their configs and these attributes.
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

// What runs leave outlives them, and is fetched; what is gone is planned and made again, and nothing else is; a destroy
// keeps it, and says where it is, or deletes it.
func TestAccSweepResults(t *testing.T) {
	w, l := newWorkspace(t)
	const kept = `results = { path = "results" }`
	configs := map[string]string{"a": `{"lr":1}`, "b": "lr: 2"}
	l.configure(w, theCluster, leaves(configs, kept), acceptance.ReadRuns, `output "a" { value = data.trainyard_sweep.lr.runs["a"].results }`)
	folder := func(key string) string { return filepath.Join(l.files.WorkDir("lr-"+key+"-0"), "results") }
	acceptance.ExpectSaid(t, w.Must("apply", "-auto-approve"), `a = "`+folder("a")+`"`)
	w.ExpectNoChange("once the runs have ended")
	left := map[string]string{"a/lines": "a leaves this\n", "a/config.json": `{"lr":1}`, "b/lines": "b leaves this\n", "b/config": "lr: 2"}
	l.must(acceptance.Differences(left, fetched(t, "lr", "--endpoint", l.files.Root)))
	l.must(acceptance.Differences(map[string]string{"b/lines": left["b/lines"], "b/config": left["b/config"]}, fetched(t, "lr/b", "--endpoint", l.files.Root)))

	l.must(os.RemoveAll(folder("b")))
	plan := w.Must("plan")
	acceptance.ExpectSaid(t, plan, `+ "b" =`, `Sweep "lr": results are gone`, "these runs start anew: b.", `Sweep "lr": 1 run starts anew`)
	if strings.Contains(plan, `+ "a" =`) {
		t.Errorf("the plan adds a run whose results are there:\n%s", plan)
	}
	w.Must("apply", "-auto-approve")
	w.ExpectNoChange("once the results are there again")
	l.must(acceptance.Differences(left, fetched(t, "lr", "--endpoint", l.files.Root)))

	configs["a"] = `{"lr":3}`
	l.configure(w, theCluster, leaves(configs, kept))
	acceptance.ExpectSaid(t, w.Must("apply", "-auto-approve"), `Sweep "lr": 1 run starts anew`)
	left["a/config.json"], left["a/lines"] = `{"lr":3}`, "a leaves this\na leaves this\n" // its folder is as it left it
	l.must(acceptance.Differences(left, fetched(t, "lr", "--endpoint", l.files.Root)))

	// A run that goes with its results leaves nothing for Terraform to compare.
	delete(configs, "b")
	l.configure(w, theCluster, leaves(configs, kept))
	l.must(os.RemoveAll(folder("b")))
	w.Must("apply", "-auto-approve")
	l.must(acceptance.Differences(map[string]int{"a": 1}, l.attemptsOf()))

	acceptance.ExpectSaid(t, w.Must("destroy", "-auto-approve"), `Results of sweep "lr" are kept`, folder("a")+" on host local")
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

// fetched returns the files that the program fetches of a sweep, or of a run.
func fetched(t *testing.T, target string, where ...string) map[string]string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "results.tar")
	args := append([]string{"sweep", "results", target, "--output", file}, where...)
	output, err := exec.CommandContext(context.WithoutCancel(t.Context()), acctest.Build(t, acctest.Provider), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, output)
	}
	archive, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for reader := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		content, errRead := io.ReadAll(reader)
		if err := errors.Join(err, errRead); err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg {
			files[header.Name] = string(content)
		}
	}
}

// Where all results are gone, all runs start anew; and an absolute path has a folder for each.
func TestAccSweepResultsElsewhere(t *testing.T) {
	l := newLab(t)
	shared := filepath.Join(t.TempDir(), "shared")
	config := l.config(theCluster, leaves(map[string]string{"a": "1", "b": "2"}, fmt.Sprintf("results = { path = %q }", shared)))
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
		resource.TestStep{Config: l.config(theCluster, leaves(map[string]string{"a": "1"}, `results = { path = "../out" }`)), ExpectError: acceptance.Says(`"../out" is no folder below a run's own`)},
		resource.TestStep{Config: config, Check: l.attempts(map[string]int{"a": 1, "b": 1})},
	)
}
