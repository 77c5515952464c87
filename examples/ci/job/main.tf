# A training job that CI submits: each run of the workflow is another run of the group.

terraform {
  required_version = ">= 1.8"

  required_providers {
    trainyard = {
      source = "trainyard/trainyard"
    }
  }
}

variable "commit" {
  description = "The commit that is submitted. CI sets it, as TF_VAR_commit."
  type        = string
  default     = "none"
}

variable "run" {
  description = "What tells this run of the workflow from all others. CI sets it, as TF_VAR_run."
  type        = string
  default     = "by hand"
}

variable "target" {
  description = "The loss that the model has to reach. One that does not fails the job, with exit code 3."
  type        = number
  default     = 0.01
}

# This machine, where the runner is one of the GPU hosts itself. Otherwise a Swarm or bare hosts, or where another configuration
# has the cluster: cluster = { name = "lab", engine = "systemd", endpoint = "ssh://ops@gpu1" } in what is below.
resource "trainyard_cluster" "lab" {
  name = "ci-lab"
}

# The checkout is brought to all hosts, but for what its .gitignore leaves out.
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

  # The run is over when the job is, whose log is followed; an apply need not hold the lock of the state until then.
  wait_for = "running"
  triggers = { commit = var.commit, run = var.run }
}
