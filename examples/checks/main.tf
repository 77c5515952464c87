# What a plan in CI says of training that runs: it warns of GPUs that somebody holds and nobody uses, and fails where a group is
# not well.

terraform {
  required_version = ">= 1.8"

  required_providers {
    trainyard = {
      source = "trainyard/trainyard"
    }
  }
}

variable "idle_below_percent" {
  description = "A GPU that a member has counts as idle below this utilisation."
  type        = number
  default     = 5
}

resource "trainyard_cluster" "lab" {
  name = "checked-lab"
}

resource "trainyard_group" "training" {
  cluster = trainyard_cluster.lab
  name    = "training"
  command = ["/bin/sleep", "infinity"]

  roles = {
    worker = { replicas = 2 }
  }

  completion = { when = "never" }
}

# A failed postcondition fails the plan, and so the job that runs it.
data "trainyard_group" "training" {
  cluster = trainyard_cluster.lab
  name    = trainyard_group.training.name

  depends_on = [trainyard_group.training]

  lifecycle {
    postcondition {
      condition     = !contains(["degraded", "failed"], self.phase)
      error_message = "The group is ${self.phase}: ${coalesce(self.reason, "no reason given")}"
    }
  }
}

# A failed check is a warning. It takes a look at one moment: alert on what lasts.
check "gpus" {
  data "trainyard_utilisation" "now" {
    cluster = trainyard_cluster.lab

    depends_on = [trainyard_group.training]
  }

  assert {
    condition = alltrue([
      for gpu in data.trainyard_utilisation.now.gpus :
      length(coalesce(gpu.members, [])) == 0 || coalesce(gpu.utilisation_percent, 100) >= var.idle_below_percent
    ])
    error_message = "Members have GPUs that are idle: ${join(", ", [
      for uuid, gpu in data.trainyard_utilisation.now.gpus : "${uuid} of host ${gpu.host} (${join(", ", gpu.members)})"
      if length(coalesce(gpu.members, [])) > 0 && coalesce(gpu.utilisation_percent, 100) < var.idle_below_percent
    ])}"
  }

  assert {
    condition = alltrue([
      for host in data.trainyard_utilisation.now.hosts :
      host.memory_used_mib == null || host.memory_mib == null || host.memory_used_mib < 0.95 * host.memory_mib
    ])
    error_message = "A host is about to run out of memory."
  }
}
