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

resource "trainyard_group" "service" {
  cluster = trainyard_cluster.lab
  name    = "service"
  command = ["/bin/sleep", "infinity"]
  roles   = { worker = { replicas = 2 } }
}

data "trainyard_group" "service" {
  cluster = trainyard_cluster.lab
  name    = trainyard_group.service.name

  # Read after the group has been applied.
  depends_on = [trainyard_group.service]
}

output "phase" {
  description = "Phase of the group."
  value       = data.trainyard_group.service.phase
}

output "running" {
  description = "Names of the running members."
  value       = [for name, member in data.trainyard_group.service.members : name if member.state == "running"]
}
