# This machine as a cluster, for tests that apply for real.

terraform {
  required_providers {
    trainyard = {
      source = "trainyard/trainyard"
    }
  }
}

resource "trainyard_cluster" "lab" {
  name = "spark-test"
}

output "cluster" {
  value = trainyard_cluster.lab
}
