//go:build linux

package process_test

import (
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
)

// If a configuration can't be planned or read, Terraform refuses to destroy, and the error says how to do so
// regardless.
func TestAccDestroyRegardless(t *testing.T) {
	job := func(cpus string) string {
		return group("job", waiting(`replicas = 2, resources = { cpus = `+cpus+` }`))
	}
	for name, config := range map[string][]string{
		"a new group that does not fit": {job("0.1"), group("huge", waiting(`resources = { cpus = 100000 }`))},
		"a new pool without its devices": {
			job("0.1"), acceptance.Pool("p", `devices = { elsewhere = ["GPU-4fa6a2a8-1a3c-4b1e-9f0e-2c7d8e5b6a91"] }`),
		},
		"a change that does not fit": {job("100000")},
		"a data source that fails": {
			job("0.1"),
			"data \"trainyard_group\" \"none\" {\n cluster = trainyard_cluster.lab\n name = \"nobody\"\n}\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, l := newWorkspace(t)
			l.configure(w, theCluster, job("0.1"))
			w.Must("apply", "-auto-approve")
			l.configure(w, append([]string{theCluster}, config...)...)
			acceptance.Refuses(w, acceptance.Says("run terraform destroy -refresh=false"), "destroy", "-auto-approve")
			l.check(l.expectAlive(2))
			w.Must("destroy", "-auto-approve", "-refresh=false")
			if left := w.Must("state", "list"); strings.TrimSpace(left) != "" {
				t.Errorf("left in the state: %s", left)
			}
			w.ExpectNobody("after destroy")
		})
	}
}
