# Prometheus and Grafana on the first of two bare hosts, which has Docker.

terraform {
  required_version = ">= 1.11"

  required_providers {
    trainyard = {
      source  = "trainyard/trainyard"
      version = ">= 0.1.0"
    }
  }
}

variable "grafana_password" {
  description = "Password of Grafana's user admin."
  type        = string
  sensitive   = true
  ephemeral   = true
}

resource "trainyard_cluster" "lab" {
  name   = "lab"
  engine = "systemd"
  agent  = { metrics_port = 9465 }

  hosts = {
    gpu1 = { address = "ssh://ops@gpu1", advertise_address = "10.0.0.1", role = "manager" }
    gpu2 = { address = "ssh://ops@gpu2", advertise_address = "10.0.0.2" }
  }
}

module "monitoring" {
  source = "../.."

  cluster       = trainyard_cluster.lab
  placement     = { hosts = ["gpu1"] }
  alertmanagers = ["10.0.0.9:9093"]

  grafana          = {}
  grafana_password = var.grafana_password
}

output "grafana" {
  description = "URL of the dashboards."
  value       = module.monitoring.grafana_endpoint
}
