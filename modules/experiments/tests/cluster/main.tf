# This machine as a cluster, for tests that actually apply.

terraform {
  required_providers {
    trainyard = {
      source = "trainyard/trainyard"
    }
  }
}

resource "trainyard_cluster" "lab" {
  name = "experiments-test"
}

output "cluster" {
  value = trainyard_cluster.lab
}
