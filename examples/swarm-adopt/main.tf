# A group on an existing Swarm: the one that the docker command would use, according to DOCKER_HOST or the current
# context. None of its nodes is changed, and none leaves on a destroy.

terraform {
  required_version = ">= 1.8"

  required_providers {
    trainyard = {
      source = "trainyard/trainyard"
    }
  }
}

variable "image" {
  description = "Image of the service, which the hosts have or can pull."
  type        = string
  default     = "registry.example.com/service:3"
}

resource "trainyard_cluster" "shared" {
  name   = "shared"
  engine = "swarm"
}

resource "trainyard_group" "service" {
  cluster = trainyard_cluster.shared
  name    = "service"
  image   = var.image

  roles = {
    broker = {
      port = 7000

      container = {
        # The dashboard is on this port of whichever host runs the broker.
        ports = { dashboard = { target = 8080, published = 8080 } }

        health_check = {
          command      = ["/bin/service", "check"]
          interval     = "10s"
          start_period = "30s"
        }
      }
    }

    worker = {
      replicas  = 3
      resources = { cpus = 0.1, memory_mib = 128 }
      env       = { BROKER = "{{ address \"broker\" 0 }}" }
      restart   = { condition = "always", delay = "5s" }
    }
  }

  completion = { when = "never" }
}

output "hosts" {
  description = "Names of the Swarm's nodes."
  value       = keys(trainyard_cluster.shared.hosts)
}

output "placements" {
  description = "Host of each member."
  value       = trainyard_group.service.placements
}
