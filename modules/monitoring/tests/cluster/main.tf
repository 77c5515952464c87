# A cluster of another configuration.
terraform {
  required_providers {
    trainyard = {
      source = "trainyard/trainyard"
    }
  }
}

data "trainyard_cluster" "lab" {
  name     = "lab"
  engine   = "systemd"
  endpoint = "ssh://ops@gpu1"
}

output "cluster" {
  value = data.trainyard_cluster.lab
}
