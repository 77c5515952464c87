# Three hosts form a Swarm, over SSH, and train on it, with one worker on each.

terraform {
  required_version = ">= 1.11" # for the write-only value of a secret

  required_providers {
    trainyard = {
      source  = "trainyard/trainyard"
      version = ">= 0.1.0"
    }
  }
}

# Logs in with the SSH agent's keys, and verifies the hosts against ~/.ssh/known_hosts.
provider "trainyard" {}

variable "image" {
  description = "Image of the trainer, which the hosts have or can pull."
  type        = string
  default     = "registry.example.com/trainer:1.2"
}

variable "token" {
  description = "Token with which the trainer accesses its data. It is never stored in the state."
  type        = string
  sensitive   = true
  ephemeral   = true
}

resource "trainyard_cluster" "lab" {
  name   = "lab"
  engine = "swarm"

  # Three managers: any one of them may fail.
  hosts = {
    gpu1 = { address = "ssh://ops@gpu1", role = "manager", labels = { disk = "nvme" } }
    gpu2 = { address = "ssh://ops@gpu2", role = "manager", labels = { disk = "nvme" } }
    gpu3 = { address = "ssh://ops@gpu3", role = "manager", labels = { disk = "nvme" } }
  }

  network = { encrypted = true }
}

resource "trainyard_group" "ddp" {
  cluster   = trainyard_cluster.lab
  name      = "ddp"
  framework = "pytorch"

  image   = var.image
  command = ["python3", "/srv/ddp/train.py"]
  env     = { GLOO_SOCKET_IFNAME = "eth0", TOKEN_FILE = "/run/secrets/token" }

  roles = {
    worker = {
      replicas  = 3
      port      = 29500
      resources = { cpus = 1, memory_mib = 1024, limits = { cpus = 2, memory_mib = 2048 } }
      placement = { strategy = "one_per_host", labels = { disk = "nvme" } }
      mounts    = [{ type = "volume", source = "checkpoints", target = "/checkpoints" }]

      container = {
        init         = true
        shm_size_mib = 512 # for the data loaders
        ulimits      = { memlock = { soft = -1, hard = -1 } }

        # A new version passes a new value, and restarts the workers.
        secrets = { token = { value = var.token, version = "1" } }
      }

      grace_period = "1m"
    }
  }

  # Synchronous training: when a worker fails in a way that is retried, or loses its host, all others go back to the
  # last checkpoint.
  restart_scope = "group"

  completion = { when = "all", deadline = "24h" }
}

output "placements" {
  description = "Host of each worker."
  value       = trainyard_group.ddp.placements
}
