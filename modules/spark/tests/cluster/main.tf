# This machine as a cluster, with a shell in place of Spark, for tests that actually apply.

terraform {
  required_providers {
    trainyard = {
      source = "trainyard/trainyard"
    }
  }
}

resource "trainyard_cluster" "lab" {
  name = "spark-test"

  hosts = {
    share = { address = "127.0.0.21" }
  }
}

output "cluster" {
  value = trainyard_cluster.lab
}

output "bin" {
  value = abspath("${path.module}/bin")
}
