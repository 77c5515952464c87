//go:build linux

package swarm_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/qmodel"
)

// exampleVariables are the values of variables without a default in the examples, in HCL.
func exampleVariables(t *testing.T) map[string]string {
	t.Helper()
	return map[string]string{
		"quickstart": fmt.Sprintf("trainer = %q", acctest.Build(t, acctest.Trainer)),
		// since no training is started
		"pytorch":         fmt.Sprintf("python = %q", acctest.Build(t, acctest.Member)),
		"pytorch-elastic": fmt.Sprintf("python = %q", acctest.Build(t, acctest.Member)),
		"jax":             fmt.Sprintf("python = %q", acctest.Build(t, acctest.Member)),
		"checkpoint":      fmt.Sprintf("python = %q", acctest.Build(t, acctest.Member)),
		"dask": fmt.Sprintf("dask = %[1]q\npython = %[1]q",
			acctest.Build(t, acctest.Member)),
		"ray": fmt.Sprintf("ray = %[1]q\npython = %[1]q",
			acctest.Build(t, acctest.Member)),
		"mpi": fmt.Sprintf("mpiexec = %[1]q\nproxy = %[1]q\npython = %[1]q",
			acctest.Build(t, acctest.Member)),
		"provider":                  `registry_password = "secret"`,
		"swarm":                     `token = "secret"`,
		"resources/trainyard_group": `token = "secret"`,
		"resources/trainyard_autoscaling_policy": fmt.Sprintf("model = %q",
			acceptance.ModelFile(t,
				qmodel.New(qmodel.DQN, []string{"load", "load_slope_1m", "p99", "count", "reassigning"}))),
		"sweep": fmt.Sprintf("trainer = %q", acctest.Build(t, acctest.Trainer)),
		"sweep-optuna": fmt.Sprintf("trainer = %q\nruns = { trial-0000 = { LR = 0.1, BATCH = 32 } }",
			acctest.Build(t, acctest.Trainer)),
	}
}

// exampleHost matches the address of a host in the examples: gpu1, gpu2, ….
var exampleHost = regexp.MustCompile(`ssh://ops@gpu(\d+)`)

// Every example plans. Docker Engines of a bed take the place of hosts that examples reach over SSH to form a Swarm;
// examples that adopt the Swarm of the docker command get another bed's.
func TestAccExamples(t *testing.T) {
	acceptance.Test(t)
	adopted := sharedBed(t).Nodes[0].Host()
	hosts := ownBed(t, testbed.Options{Nodes: 3}).Nodes
	variables := exampleVariables(t)
	folders := exampleFolders(t)
	for name := range variables {
		if !folders[name] {
			t.Errorf("there is no example %q", name)
		}
	}
	for name := range folders {
		t.Run(name, func(t *testing.T) {
			acceptance.RequiresAsIn(t, filepath.Join(acceptance.Examples, name))
			w := acctest.NewWorkspace(t, acctest.Build(t, acctest.Provider))
			l := swarmLab{T: t}
			l.must(acceptance.Copy(w.Dir, filepath.Join(acceptance.Examples, name)))
			files, err := filepath.Glob(filepath.Join(w.Dir, "*.tf"))
			l.must(err)
			for _, file := range files {
				content, err := os.ReadFile(file)
				l.must(err)
				if filepath.Base(file) == "backend.tf" {
					l.must(os.Remove(file)) // its state is elsewhere
					continue
				}
				if acceptance.OnBareHosts(content) {
					if filepath.Base(file) == "main.tf" {
						t.Skip("it is for bare hosts, and the tests of that engine apply it")
					}
					l.must(os.Remove(file)) // planned by the tests of that engine
					continue
				}
				w.Write(filepath.Base(file),
					exampleHost.ReplaceAllStringFunc(string(content), func(address string) string {
						number, err := strconv.Atoi(exampleHost.FindStringSubmatch(address)[1])
						if err != nil || number < 1 || number > len(hosts) {
							t.Fatalf("%s: %s is none of the hosts gpu1 to gpu%d", file, address, len(hosts))
						}
						return hosts[number-1].Host()
					}))
			}
			w.Write("terraform.tfvars", variables[name])
			w.Must("get")
			output, err := w.Command(t.Context(), []string{"DOCKER_HOST=" + adopted}, "plan").CombinedOutput()
			if err != nil || strings.Contains(string(output), "No changes") {
				t.Errorf("it does not plan, or the plan holds nothing: %v\n%s", err, output)
			}
		})
	}
}

// exampleFolders returns the folders with examples, relative to that of all.
func exampleFolders(t *testing.T) map[string]bool {
	t.Helper()
	folders := map[string]bool{}
	err := fs.WalkDir(os.DirFS(acceptance.Examples), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if _, err := os.Stat(filepath.Join(acceptance.Examples, path, "tests")); err == nil {
			return fs.SkipDir // a module, which its own tests plan
		}
		if filepath.Ext(path) == ".tf" {
			folders[filepath.Dir(path)] = true
		}
		return nil
	})
	if err != nil || len(folders) == 0 {
		t.Fatalf("there are no examples: %v", err)
	}
	return folders
}
