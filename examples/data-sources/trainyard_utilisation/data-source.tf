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

data "trainyard_utilisation" "now" {
  cluster = trainyard_cluster.lab
  window  = "5m"
  filter  = { groups = ["service"] }

  # Read after the group has been applied.
  depends_on = [trainyard_group.service]
}

output "memory_mib" {
  description = "Memory in use by each member; null if unknown."
  value       = { for name, member in data.trainyard_utilisation.now.members : name => member.memory_used_mib }
}

output "peak_memory_mib" {
  description = "Peak memory of each member in the last five minutes."
  value       = { for name, member in data.trainyard_utilisation.now.members : name => member.max.memory_used_mib }
}

output "unknown" {
  description = "Members with unknown values, and the reason."
  value       = { for name, member in data.trainyard_utilisation.now.members : name => member.reason if member.reason != null }
}
