# A training job that CI submits: each run of the workflow reruns the group.

terraform {
  required_version = ">= 1.8"

  required_providers {
    trainyard = {
      source = "trainyard/trainyard"
    }
  }
}

variable "commit" {
  description = "Commit that is submitted. CI sets it as TF_VAR_commit."
  type        = string
  default     = "none"
}

variable "run" {
  description = "Unique ID of this run of the workflow. CI sets it as TF_VAR_run."
  type        = string
  default     = "by hand"
}

variable "target" {
  description = "Loss that the model has to reach. If it does not, the job fails with exit code 3."
  type        = number
  default     = 0.01
}

# This machine, if the runner is itself one of the GPU hosts. Otherwise a Swarm or bare hosts; if another configuration
# manages the cluster, set cluster = { name = "lab", engine = "systemd", endpoint = "ssh://ops@gpu1" } below.
resource "trainyard_cluster" "lab" {
  name = "ci-lab"
}

# The checkout is copied to all hosts, except for what its .gitignore excludes.
resource "trainyard_files" "code" {
  cluster = trainyard_cluster.lab
  name    = "code"
  source  = "${path.module}/train"
}

resource "trainyard_group" "job" {
  cluster = trainyard_cluster.lab
  name    = "job"
  command = ["python3", "-u", "${trainyard_files.code.path}/train.py"]
  env     = { TARGET = tostring(var.target), COMMIT = var.commit }

  roles = {
    worker = { replicas = 1, restart = { condition = "never" } }
  }

  # The pipeline follows the job's log to its end, so the apply need not hold the state lock until then.
  wait_for = "running"
  triggers = { commit = var.commit, run = var.run }
}
