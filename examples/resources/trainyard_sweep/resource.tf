terraform {
  required_providers {
    trainyard = {
      source = "trainyard/trainyard"
    }
  }
}

resource "trainyard_cluster" "lab" {
  name = "lab"
}

# Twelve trials, as many at a time as there is room for. Adding, removing or changing a key affects only that trial.
resource "trainyard_sweep" "trials" {
  cluster = trainyard_cluster.lab
  name    = "trials"
  command = ["/bin/sh", "-c", "sleep 2; echo loss=$(awk \"BEGIN { srand($SEED); print rand() * $LR }\")"]

  runs = merge([
    for lr in ["0.1", "0.01", "0.001"] : {
      for seed in range(4) : "lr-${replace(lr, ".", "-")}-seed-${seed}" => { LR = lr, SEED = seed }
    }
  ]...)

  max_parallel = 4
  resources    = { cpus = 0.1, memory_mib = 64 }
  retry        = { max_attempts = 2, delay = "5s" }
  on_failure   = { after = 3, then = "stop" }
  objective    = { pattern = "loss=([0-9.e-]+)", goal = "minimise" }
}

# The apply waits until all runs have succeeded. A new version of the data reruns those that did not.
resource "trainyard_sweep" "evaluation" {
  cluster = trainyard_cluster.lab
  name    = "evaluation"
  command = ["/bin/echo", "evaluates", "{{ .Env.CHECKPOINT }}"]
  runs    = { for step in [1000, 2000, 3000] : "step-${step}" => { CHECKPOINT = step } }

  wait_for = "completed"
  rerun    = "failed"
  triggers = { data = "v2" }
  timeouts = { create = "1h", update = "1h" }
}
