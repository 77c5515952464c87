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
  description = "A GPU that a member has counts as idle where it worked less than this in the last ten minutes, on average."
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

# The UUIDs of the GPUs that members have: also of those that no process has opened, as one that trains on the CPU in silence.
locals {
  held = toset(flatten([for placement in values(trainyard_group.training.placements) : compact(split(",", try(split(" ", placement)[1], "")))]))
}

# A failed check is a warning. One look says little of a GPU, which waits for data now and then: what lasts is told by the mean.
check "gpus" {
  data "trainyard_utilisation" "now" {
    cluster = trainyard_cluster.lab
    window  = "10m"

    depends_on = [trainyard_group.training]
  }

  assert {
    condition = alltrue([
      for uuid, gpu in data.trainyard_utilisation.now.gpus :
      !contains(local.held, uuid) || coalesce(gpu.mean.utilisation_percent, 100) >= var.idle_below_percent
    ])
    error_message = "Members have GPUs that are idle: ${join(", ", [
      for uuid, gpu in data.trainyard_utilisation.now.gpus : "${uuid} of host ${gpu.host}"
      if contains(local.held, uuid) && coalesce(gpu.mean.utilisation_percent, 100) < var.idle_below_percent
    ])}"
  }

  assert {
    condition = alltrue([
      for host in data.trainyard_utilisation.now.hosts :
      host.max.memory_used_mib == null || host.memory_mib == null || host.max.memory_used_mib < 0.95 * host.memory_mib
    ])
    error_message = "A host is about to run out of memory."
  }

  # What is not known passes the others.
  assert {
    condition = alltrue([
      for host in data.trainyard_utilisation.now.hosts : host.reason == null && coalesce(host.age_seconds, 0) < 60
    ])
    error_message = "Not every host can be measured: ${join("; ", [
      for name, host in data.trainyard_utilisation.now.hosts :
      "${name}: ${host.reason != null ? host.reason : "last measured ${host.age_seconds} seconds ago"}"
      if host.reason != null || coalesce(host.age_seconds, 0) >= 60
    ])}"
  }
}
