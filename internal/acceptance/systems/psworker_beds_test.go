//go:build linux

package systems_test

import (
	"fmt"
	"testing"
	"time"
)

// The module trains on bare hosts as on this machine.
func TestSystemPSWorkerBareHosts(t *testing.T) {
	trainOn(t, func() *site { return onHosts(t, newEnvironment(t, "tensorflow"), 2) })
}

// The module trains on a Swarm as on this machine, with its own program in an image that doesn't contain it.
func TestSystemPSWorkerSwarm(t *testing.T) {
	trainOn(t, func() *site { return onSwarm(t, newEnvironment(t, "tensorflow"), 2) })
}

// trainOn trains with two parameter servers and two workers on several machines.
func trainOn(t *testing.T, start func() *site) {
	t.Helper()
	const steps = 300
	w := newTensorFlow(t)
	s := start()
	w.Write("main.tf", `
terraform {
  required_providers {
    trainyard = { source = "trainyard/trainyard" }
  }
}
`+s.cluster+fmt.Sprintf(`
module "mnist" {
  source      = "./modules/ps-worker"
  cluster     = trainyard_cluster.lab
  name        = "mnist"
  train_steps = %d
  wait_for    = "completed"
  ps          = { placement = { strategy = "spread" } }
  worker      = { placement = { strategy = "spread" } }
%s}

output "placements" { value = module.mnist.placements }
`, steps, s.members())+watched("mnist"))
	w.Must("get")
	begin := time.Now()
	w.Must("apply", "-auto-approve")
	expectTrained(w, steps, time.Since(begin))
	s.expectOnAll(w, "placements")
	w.ExpectNoChange("after the training")
	w.Must("destroy", "-auto-approve")
	s.expectNothing(t)
}
