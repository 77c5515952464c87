//go:build linux

package process_test

import (
	"fmt"
	"regexp"
	"slices"
	"sync"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// TestAccGPUsOfConcurrentApplies: of twenty concurrent runs of Terraform that request one of eight devices each, no two
// get the same device, and those without one have created nothing. When these try again, the devices left go to some,
// and the others fail at plan time.
func TestAccGPUsOfConcurrentApplies(t *testing.T) {
	acceptance.Test(t)
	const runs, devices = 20, 8
	control := fakenvml.New(t)
	control.Set(fakenvml.V100s("dgx", devices)...)
	first := acctest.NewWorkspace(t, acctest.ProviderWithGPUs(t, control))
	l := &gpuLab{lab: &lab{T: t, port: freePorts(t)}}
	l.files.Root, l.files.Cluster = first.StateDir, "lab"
	l.configure(first, theCluster, acceptance.Pool("p", `select = { model = "*" }`))
	first.Must("apply", "-auto-approve")
	defer first.Must("destroy", "-auto-approve")

	refused := regexp.MustCompile(`Not enough GPUs|no\s+longer\s+available`)
	var workspaces []*acctest.Workspace
	for i := range runs {
		w := first.Another()
		l.configure(w, fmt.Sprintf(`
resource "trainyard_group" "job" {
  cluster = { name = "lab" }
  name    = "job%d"
  command = [local.member, "wait"]
  roles   = { worker = { gpus = { pool = "p" } } }
}`, i))
		workspaces = append(workspaces, w)
	}
	has := make([]bool, runs)
	apply := func(i int) {
		output, err := workspaces[i].Run("apply", "-auto-approve")
		has[i] = err == nil
		if err != nil && !refused.MatchString(output) {
			t.Errorf("run %d: %v\n%s", i, err, output)
		}
	}
	owners := func() map[domain.DeviceSet]string {
		t.Helper()
		groups, err := engine.List[domain.GroupDocument](t.Context(), l.engine())
		l.must(err)
		owners := map[domain.DeviceSet]string{}
		for name, group := range groups {
			for _, at := range group.Assignments {
				if other, taken := owners[at.GPUs]; taken || at.GPUs == "" {
					t.Errorf("groups %s and %s have device %q", other, name, at.GPUs)
				}
				owners[at.GPUs] = name
			}
		}
		return owners
	}

	var all sync.WaitGroup
	for i := range runs {
		all.Go(func() { apply(i) })
	}
	all.Wait()
	served := 0
	for _, one := range has {
		if one {
			served++
		}
	}
	if got := len(owners()); got != served || served == 0 {
		t.Errorf("%d runs were served, and %d groups have devices", served, got)
	}
	t.Logf("%d of %d runs at the same time were served at once", served, runs)
	for i := range runs {
		if !has[i] && served < devices {
			if apply(i); !has[i] {
				t.Errorf("run %d was refused again, with %d of %d devices taken", i, served, devices)
			}
			served++
		}
	}
	if got := len(owners()); got != devices {
		t.Errorf("in the end %d of %d devices have owners", got, devices)
	}
	next := slices.Index(has, false)
	if apply(next); has[next] {
		t.Errorf("run %d got a device of %d that are all taken", next, devices)
	}
	for i, w := range workspaces {
		if has[i] {
			all.Go(func() {
				if output, err := w.Run("destroy", "-auto-approve"); err != nil {
					t.Errorf("the end of run %d: %v\n%s", i, err, output)
				}
			})
		}
	}
	all.Wait()
	if left := owners(); len(left) > 0 {
		t.Errorf("after the end of all groups devices belong to %v", left)
	}
}
