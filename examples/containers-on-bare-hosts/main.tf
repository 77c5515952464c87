# The quickstart's training in containers on bare hosts: each host pulls the image from a private registry, with
# credentials from Terraform, and runs it on its own Docker Engine. No Swarm is formed.

terraform {
  required_version = ">= 1.8"

  required_providers {
    trainyard = {
      source = "trainyard/trainyard"
    }
  }
}

provider "trainyard" {
  ssh = var.ssh

  docker = {
    # If omitted, the credentials of docker login on this machine are used.
    registries = var.registry_login == null ? null : { (split("/", var.image)[0]) = var.registry_login }
  }
}

resource "trainyard_cluster" "lab" {
  name   = "lab"
  engine = "systemd"
  hosts  = var.hosts
}

resource "trainyard_group" "digits" {
  cluster   = trainyard_cluster.lab
  name      = "digits"
  framework = "tensorflow" # each member finds its place in TF_CONFIG
  image     = var.image
  args      = ["-steps", tostring(var.steps)]

  # Containers share their host's network. Members of a role on the same host listen on port, port + 1 and so on.
  roles = {
    ps     = { replicas = 2, port = 8000 }
    worker = { replicas = 4, port = 9000 }
  }

  wait_for = "completed"
}

data "trainyard_logs" "chief" {
  cluster = trainyard_cluster.lab
  member  = "${trainyard_group.digits.name}-worker-0"
  tail    = 20

  depends_on = [trainyard_group.digits]
}

locals {
  # The log is JSON lines, and goes on when the group trains again: the last evaluation counts.
  evaluations = [for line in data.trainyard_logs.chief.lines : jsondecode(line) if can(jsondecode(line).examples)]
}

output "placements" {
  description = "Host of each member."
  value       = trainyard_group.digits.placements
}

output "accuracy" {
  description = "Accuracy of the trained model on held-out digits, from 0 to 1; null if it was not evaluated."
  value       = try(reverse(local.evaluations)[0].accuracy, null)
}
