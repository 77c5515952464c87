# A service, and what a nightly plan reports about it: `terraform plan -detailed-exitcode` exits with 2 if anything
# differs from this configuration, and with 1 if nothing differs but the service is down.

terraform {
  required_version = ">= 1.8"

  required_providers {
    trainyard = {
      source = "trainyard/trainyard"
    }
  }
}

variable "command" {
  description = "Command of the service's members. Try [\"/bin/false\"] on a running service."
  type        = list(string)
  default     = ["/bin/sleep", "infinity"]
}

resource "trainyard_cluster" "lab" {
  name = "drift-lab"
}

resource "trainyard_group" "service" {
  cluster = trainyard_cluster.lab
  name    = "service"
  command = var.command

  roles = {
    worker = {
      replicas = 2
      restart  = { condition = "always", delay = "5s" }
    }
  }

  completion = { when = "never" }
}

data "trainyard_group" "service" {
  cluster = trainyard_cluster.lab
  name    = trainyard_group.service.name

  depends_on = [trainyard_group.service]

  lifecycle {
    postcondition {
      condition     = self.phase == "running"
      error_message = "The service is ${self.phase}: ${coalesce(self.reason, "no reason given")}"
    }
  }
}
