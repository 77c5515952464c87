# Optuna asks, Trainyard runs: study.py writes the trials to runs.auto.tfvars.json, and each is a run of this sweep.

terraform {
  required_version = ">= 1.8"

  required_providers {
    trainyard = {
      source = "trainyard/trainyard"
    }
  }
}

variable "runs" {
  description = "Parameters of the trials by key: { \"trial-0000\" = { LR = 0.1, BATCH = 32 } }. study.py writes them."
  type        = map(object({ LR = number, BATCH = number }))
}

variable "trainer" {
  description = "Path of the training program. Defaults to `digits-trainer` in this folder, built with `CGO_ENABLED=0 go build -o digits-trainer ../quickstart/trainer`."
  type        = string
  default     = null
}

variable "steps" {
  description = "Mini-batches that each run trains on."
  type        = number
  default     = 500
}

resource "trainyard_cluster" "lab" {
  name = "optuna-lab"
}

# A new trial adds a run: running ones continue, and finished ones stay finished. A failed run does not fail the
# apply, which does not wait for runs.
resource "trainyard_sweep" "study" {
  cluster = trainyard_cluster.lab
  name    = "study"

  command = [coalesce(var.trainer, abspath("${path.module}/digits-trainer")), "-alone"]
  args    = ["-steps", tostring(var.steps), "-learning-rate", "{{ .Env.LR }}", "-batch-size", "{{ .Env.BATCH }}"]
  runs    = var.runs

  objective = { pattern = "\"event\":\"evaluation\".*\"accuracy\":([0-9.]+)" }
}

data "trainyard_sweep" "study" {
  cluster = trainyard_cluster.lab
  name    = trainyard_sweep.study.name

  depends_on = [trainyard_sweep.study]
}

output "results" {
  description = "State and accuracy of each run, as reported to Optuna."
  value = {
    for key, run in data.trainyard_sweep.study.runs : key => { state = run.state, value = run.value, reason = run.reason }
  }
}
