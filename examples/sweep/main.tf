# 50 runs of the quickstart's trainer, which differ in learning rate and seed, as processes on this machine: they wait
# until there is room, and the best one is an output.

terraform {
  required_version = ">= 1.8"

  required_providers {
    trainyard = {
      source = "trainyard/trainyard"
    }
  }
}

locals {
  trainer = coalesce(var.trainer, abspath("${path.module}/digits-trainer"))

  # A run is identified by its key, and its values are its environment: { "lr-0-3-seed-7" = { LR = "0.3", SEED = "7" },
  # … }
  grid = {
    for pair in setproduct(var.learning_rates, range(var.seeds)) :
    "lr-${replace(pair[0], ".", "-")}-seed-${pair[1]}" => { LR = pair[0], SEED = pair[1] }
  }
  runs = merge(local.grid, var.runs)
}

resource "trainyard_cluster" "lab" {
  name = "sweep-lab"
}

resource "trainyard_sweep" "lr" {
  cluster = trainyard_cluster.lab
  name    = "lr"

  command = [local.trainer, "-alone"]
  args    = ["-steps", tostring(var.steps), "-learning-rate", "{{ .Env.LR }}", "-seed", "{{ .Env.SEED }}"]
  runs    = local.runs

  # If omitted, as many run in parallel as the machine has CPUs.
  max_parallel = var.max_parallel

  # The trainer ends with a line such as {"event":"evaluation", …, "accuracy":0.9749,"examples":359}.
  objective = { pattern = "\"event\":\"evaluation\".*\"accuracy\":([0-9.]+)" }

  # Failed runs start again when `again` changes. Those that succeeded keep their results.
  rerun    = "failed"
  triggers = { again = var.again }

  # The apply returns when all runs have ended. With "accepted", the default, it returns at once.
  wait_for = "completed"
}

data "trainyard_sweep" "lr" {
  cluster = trainyard_cluster.lab
  name    = trainyard_sweep.lr.name

  depends_on = [trainyard_sweep.lr]
}
