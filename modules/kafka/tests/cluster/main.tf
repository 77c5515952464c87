# This machine as a cluster, with a shell in place of Java and of the rebalancer, for tests that actually apply.

terraform {
  required_providers {
    trainyard = {
      source = "trainyard/trainyard"
    }
  }
}

resource "trainyard_cluster" "lab" {
  name = "kafka-test"
}

output "cluster" {
  value = trainyard_cluster.lab
}

output "bin" {
  value = abspath("${path.module}/bin")
}
