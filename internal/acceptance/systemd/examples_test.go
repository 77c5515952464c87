//go:build linux

package systemd_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// exampleHost matches the address of a host in the examples: gpu1, gpu2, ….
var exampleHost = regexp.MustCompile(`ssh://ops@gpu(\d)\b`)

// Every example for bare hosts plans, with those of the bed.
func TestAccExamples(t *testing.T) {
	l := newLab(t, 0, 1, 2)
	files, err := filepath.Glob(filepath.Join(acceptance.Examples, "*", "*", "*.tf"))
	l.must(err)
	planned := 0
	for _, file := range files {
		content, err := os.ReadFile(file)
		l.must(err)
		if !acceptance.OnBareHosts(content) {
			continue
		}
		planned++
		w := acctest.NewWorkspace(t, l.provider)
		w.Write("main.tf",
			required+l.providerBlock()+exampleHost.ReplaceAllStringFunc(string(content), func(at string) string {
				var number int
				if _, err := fmt.Sscanf(at, "ssh://ops@gpu%d", &number); err != nil || number < 1 ||
					number > len(l.hosts) {
					t.Fatalf("%s: %s is none of the hosts gpu1 to gpu%d", file, at, len(l.hosts))
				}
				host := l.hosts[number-1]
				return fmt.Sprintf(`%s", advertise_address = "%s:22`, address(host), host.Address) // for other hosts
			}))
		w.Must("plan")
	}
	if planned == 0 {
		t.Error("there are no examples")
	}
}

// leastAccuracy is the minimum accuracy of the quickstart's model, which is usually about 0.97.
const leastAccuracy = 0.9

// The quickstart is the same configuration with another engine: it trains, and the next plan is empty.
func TestAccQuickstart(t *testing.T) {
	l := newLab(t, 1, 2)
	w := l.example("quickstart")
	w.Env("TF_DISABLE_PLUGIN_TLS", "") // as users' Terraform does, unlike in other tests
	trainer, err := os.ReadFile(acctest.Build(t, acctest.Trainer))
	l.must(err)
	l.must(os.WriteFile(filepath.Join(w.Dir, "digits-trainer"), trainer, 0o755)) //nolint:gosec // a program
	l.trains(w, "engine = \"systemd\"")
}

// Images come from a registry that requires a login, without a docker login on the hosts. A new image trains again.
func TestAccContainersExample(t *testing.T) {
	acceptance.Test(t)
	bed := dockerBed(t)
	l := openLab(t, bed, acctest.Build(t, acctest.Provider), 0, 1)
	listener, err := bed.Listen(0)
	l.must(err)
	const password = "of-the-registry"
	shop := acctest.ServeRegistry(t, listener, password)
	first := shop.Push(t, acctest.Trainer, "digits-trainer:1")
	second := shop.Push(t, acctest.Trainer, "digits-trainer:2")
	l.dropsImages(first, second)
	w := l.example("containers-on-bare-hosts")
	w.Env("TF_VAR_registry_login", fmt.Sprintf("{ username = %q, password = %q }", acctest.RegistryUser, password))
	l.trains(w, fmt.Sprintf("image = %q", first), fmt.Sprintf("image = %q", second))
}

// example returns a workspace with an example, whose cluster becomes the lab's.
func (l *lab) example(folder string) *acctest.Workspace {
	l.Helper()
	l.name = "lab" // the examples' name
	w := acctest.NewWorkspace(l, l.provider)
	l.must(acceptance.Copy(w.Dir, filepath.Join(acceptance.Examples, folder)))
	return w
}

// trains applies an example with each of these sets of variables in turn, and fails unless its model has learnt.
func (l *lab) trains(w *acctest.Workspace, variables ...string) {
	l.Helper()
	var hosts strings.Builder
	for i, host := range l.hosts {
		role := []string{"manager", "worker"}[i]
		fmt.Fprintf(&hosts, "  %s = { address = %q, advertise_address = %q, role = %q }\n", host.Name, address(host),
			host.Address.String()+":22", role)
	}
	for _, set := range variables {
		w.Write("terraform.tfvars",
			fmt.Sprintf("%s\nsteps = 300\nhosts = {\n%s}\nssh = { identity_files = [%q], known_hosts_files = [%q] }\n",
				set, &hosts, l.bed.KeyFile, l.bed.KnownHosts))
		w.Must("apply", "-auto-approve")
		w.ExpectNoChange("after the training")
		var outputs map[string]struct{ Value any }
		l.must(json.Unmarshal([]byte(w.Must("output", "-json")), &outputs))
		accuracy, known := outputs["accuracy"].Value.(float64)
		if phase, hasPhase := outputs["phase"]; hasPhase && phase.Value != "completed" || !known ||
			accuracy < leastAccuracy {
			l.Errorf("got %v", outputs)
		}
	}
	w.Must("destroy", "-auto-approve")
}
