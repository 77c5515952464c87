# Prometheus and Grafana on the host of a Swarm that has room for their data.

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
  engine = "swarm"

  hosts = {
    gpu1 = { address = "ssh://ops@gpu1", role = "manager" }
    gpu2 = { address = "ssh://ops@gpu2" }
  }
}

module "monitoring" {
  source = "../.."

  cluster        = trainyard_cluster.lab
  placement      = { hosts = ["gpu1"] }
  retention      = "90d"
  retention_size = "50GB"
  resources      = { cpus = 1, memory_mib = 2048 }

  grafana          = { published_port = 3000 }
  grafana_password = var.grafana_password

  scrape_configs = [{
    job_name       = "dcgm"
    static_configs = [{ targets = ["gpu1:9400", "gpu2:9400"] }]
  }]
}

output "grafana" {
  description = "Name of the host whose port 3000 serves the dashboards."
  value       = module.monitoring.grafana_host
}
