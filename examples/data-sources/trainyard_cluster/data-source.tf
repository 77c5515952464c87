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

data "trainyard_cluster" "lab" {
  name = trainyard_cluster.lab.id
}

output "groups" {
  description = "Names of the groups in the cluster."
  value       = data.trainyard_cluster.lab.groups
}
