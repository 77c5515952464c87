# A controller and three brokers on this machine, as processes of /opt/kafka.

terraform {
  required_version = ">= 1.11"

  required_providers {
    trainyard = {
      source  = "trainyard/trainyard"
      version = ">= 0.1.0"
    }
  }
}

resource "trainyard_cluster" "lab" {
  name   = "lab"
  engine = "process"
}

module "kafka" {
  source = "../.."

  cluster = trainyard_cluster.lab
}

output "bootstrap_servers" {
  description = "Bootstrap servers for producers and consumers."
  value       = module.kafka.bootstrap_servers
}
