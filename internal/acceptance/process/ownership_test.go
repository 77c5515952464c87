//go:build linux

package process_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// lastly depends on everything, and has Terraform create all of that before it destroys it.
const lastly = `
resource "terraform_data" "last" {
  input = [%s]
  lifecycle {
    create_before_destroy = true
  }
}
`

// heirs is a workspace whose resources are created before they are destroyed.
type heirs struct {
	killed
	lab *lab
}

func newHeirs(t *testing.T) heirs {
	t.Helper()
	h := heirs{killed: newKilled(t)}
	h.lab = &lab{T: t}
	h.lab.files.Root, h.lab.files.Cluster = h.StateDir, "lab"
	return h
}

// configure writes a configuration with the cluster and one resource of each kind. The members of its group take these
// steps.
func (h heirs) configure(steps ...string) {
	h.Helper()
	if err := os.MkdirAll(filepath.Join(h.Dir, "train"), 0o700); err != nil {
		h.Fatal(err)
	}
	h.Write("train/run.sh", "exec \"$@\"\n")
	h.write(fmt.Sprintf(`
resource "trainyard_files" "code" {
  cluster = trainyard_cluster.lab
  name    = "code"
  source  = "${path.module}/train"
}
resource "trainyard_group" "job" {
  cluster  = trainyard_cluster.lab
  name     = "job"
  command  = concat(["/bin/sh", "${trainyard_files.code.path}/run.sh"], %s)
  wait_for = %q
  roles    = { worker = { exit_codes = { final = ["3"] } } }
}
resource "trainyard_sweep" "lr" {
  cluster = trainyard_cluster.lab
  name    = "lr"
  command = %s
  runs    = { one = { I = 1 } }
}
`, h.command(steps...), map[bool]string{true: "running", false: "completed"}[steps[0] == "wait"],
		h.command("wait")) +
		scaling("  min = 1\n  max = 4"+idle) +
		fmt.Sprintf(lastly, theCode+".id, trainyard_sweep.lr.id, "+theScaling+".id"))
}

// expect fails unless the two members run, and a plan finds nothing to do.
func (h heirs) expect(when string) {
	h.Helper()
	h.killed.expect(2, when)
}

// A replacement that is created before the former instance is destroyed adopts what exists, and the destroy leaves that
// alone.
func TestAccReplacedBeforeDestroyed(t *testing.T) {
	h := newHeirs(t)
	h.configure("wait")
	h.Must("apply", "-auto-approve")
	h.expect("created")
	before := h.lab.instances()
	spares := acceptance.Says("Belongs to another instance")
	for _, address := range []string{
		acceptance.TheLab, theCode, acceptance.TheJob, theScaling, "trainyard_sweep.lr",
	} {
		for what, replace := range map[string]func() string{
			"replaced": func() string { return h.Must("apply", "-auto-approve", "-replace="+address) },
			"tainted":  func() string { h.Must("taint", address); return h.Must("apply", "-auto-approve") },
		} {
			if output := replace(); !spares.MatchString(output) {
				t.Errorf("%s %s: the apply says:\n%s", address, what, output)
			}
			h.expect(address + " " + what)
			if after := h.lab.instances(); !maps.Equal(after, before) {
				t.Errorf("%s %s: the members' instances were %v, and are %v", address, what, before, after)
			}
		}
	}
}

// A group whose creation failed is adopted as it is by its replacement, and the next change runs it again.
func TestAccFailedBeforeDestroyed(t *testing.T) {
	h := newHeirs(t)
	gate := filepath.Join(h.Dir, "gate")
	h.configure("until:"+gate, "exit:3")
	var output strings.Builder
	apply := h.Command(t.Context(), nil, "apply", "-auto-approve")
	apply.Stdout, apply.Stderr = &output, &output
	h.lab.must(apply.Start())
	acctest.Eventually(t, "the group to run", func() bool { // an apply repeats the start of a group that has never run
		document, err := engine.Get[domain.GroupDocument](t.Context(), h.lab.engine(), "job")
		return err == nil && !document.Applying
	})
	h.lab.must(os.WriteFile(gate, nil, 0o600))
	if err := apply.Wait(); err == nil || !strings.Contains(output.String(), "exit code 3") {
		t.Fatalf("an apply of a group that fails: %v\n%s", err, output.String())
	}
	h.Must("apply", "-auto-approve")
	h.killed.expect(1, "adopted with its failed member, beside the run of the sweep")
	h.configure("wait")
	h.Must("apply", "-auto-approve")
	h.expect("changed")
}

// Of two workspaces with the same configuration, the one that applied it last decides when everything ends.
func TestAccAdoptedByAnotherWorkspace(t *testing.T) {
	first := newKilled(t)
	first.configure(1, "wait")
	first.Must("apply", "-auto-approve")
	second := killed{first.Another(), first.member, first.port}
	second.configure(1, "wait")
	second.Must("apply", "-auto-approve")
	second.expect(1, "adopted")
	first.Must("destroy", "-auto-approve")
	second.expect(1, "destroyed by the workspace that created it")
	second.Must("destroy", "-auto-approve")
	second.ExpectNobody("after the adopter's destroy")
}

// TestReplacementKilled kills the provider after changes of a replacement that is created first. The next one succeeds,
// and a destroy leaves nothing.
func TestReplacementKilled(t *testing.T) {
	k := newKilled(t)
	replace := []string{"apply", "-auto-approve", "-replace=" + acceptance.TheJob}
	for last := range acctest.Kills(4) {
		k.configure(2, "wait")
		k.Write("last.tf", fmt.Sprintf(lastly, acceptance.TheJob+".id"))
		k.Must("apply", "-auto-approve")
		survived := k.DieAfter(last, replace...)
		calls := k.Calls()
		when := fmt.Sprintf("after a death after change %d (%s)", last, calls[len(calls)-1])
		k.Must(replace...)
		k.expect(2, when)
		k.Must("destroy", "-auto-approve")
		k.ExpectNobody(when)
		k.Logf("0 orphans %s of: %s", when, strings.Join(calls, " "))
		if survived {
			k.expectDeaths(calls)
			return
		}
	}
}
