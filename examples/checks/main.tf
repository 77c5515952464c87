# What a plan in CI reports about running training: it warns of GPUs that are held but idle, and fails if a group is
# unhealthy.

terraform {
  required_version = ">= 1.8"

  required_providers {
    trainyard = {
      source = "trainyard/trainyard"
    }
  }
}

variable "idle_below_percent" {
  description = "Mean utilisation over the window below which a member's GPU counts as idle."
  type        = number
  default     = 5
}

variable "window" {
  description = "How long a GPU has to be idle. Agents keep ten minutes of measurements."
  type        = string
  default     = "10m"
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

# A failed postcondition fails the plan, and so the job that runs it, unless the group has pending changes: then it is
# read during the apply. Such a plan exits with 0, or with 2 under -detailed-exitcode: use that in CI, and treat 2 as a
# finding, too.
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

# UUIDs of the GPUs that members have, including those that no process has opened, as when a program silently trains on
# the CPU. A member that has not run for the whole window is left out: before it started, its GPUs were unused.
locals {
  held = toset(flatten([
    for member in values(data.trainyard_group.training.members) : member.gpus
    if member.state == "running" && timecmp(timeadd(coalesce(member.started_at, plantimestamp()), var.window), plantimestamp()) <= 0
  ]))
}

# Inside the check, each apply would read it once more, and -detailed-exitcode would then return 2.
data "trainyard_utilisation" "now" {
  cluster = trainyard_cluster.lab
  window  = var.window

  depends_on = [trainyard_group.training]
}

# A failed check is a warning. A single sample says little about a GPU, which sometimes waits for data: the mean counts.
check "gpus" {
  assert {
    condition = alltrue([
      for uuid, gpu in data.trainyard_utilisation.now.gpus :
      !contains(local.held, uuid) || coalesce(gpu.mean.utilisation_percent, 100) >= var.idle_below_percent
    ])
    error_message = "GPUs of members are idle: ${join(", ", [
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

  # Unknown values pass the assertions above.
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
