# Two workloads of three workers each, side by side on three hosts: as programs with engine = "systemd", and with engine
# = "swarm" as containers, on a separate network for each. The second continues from a model of an earlier training, and
# TensorBoard shows both.

terraform {
  required_version = ">= 1.11"

  required_providers {
    trainyard = {
      source  = "trainyard/trainyard"
      version = ">= 0.1.0"
    }
  }
}

variable "engine" {
  description = "Engine that runs the workers: `swarm` or `systemd`."
  type        = string
  default     = "swarm"
}

locals {
  swarm = var.engine == "swarm"

  # A different port for each on bare hosts, where they share the hosts' addresses, and a different subnet for each on a
  # Swarm.
  workloads = {
    first  = { port = 5001, board = 6006, subnet = "192.168.0.0/24", from = null }
    second = { port = 5101, board = 6106, subnet = "10.10.0.0/24", from = "/mnt/nas/models/2025/model.keras" }
  }
}

resource "trainyard_cluster" "lab" {
  name   = "lab"
  engine = var.engine

  hosts = {
    node1 = { address = "ssh://ops@node1", role = "manager" }
    node2 = { address = "ssh://ops@node2", role = local.swarm ? "manager" : null }
    node3 = { address = "ssh://ops@node3", role = local.swarm ? "manager" : null }
  }
}

# All hosts of a Swarm have the image before training starts. Bare hosts have TensorFlow installed.
resource "trainyard_image" "tensorflow" {
  count = local.swarm ? 1 : 0

  cluster = trainyard_cluster.lab
  name    = "tensorflow:cpu"
  build   = { context = "${path.module}/../.." }
}

module "workload" {
  source   = "../.."
  for_each = local.workloads

  cluster = trainyard_cluster.lab
  name    = each.key
  image   = one(trainyard_image.tensorflow[*].image_id)
  network = local.swarm ? { subnet = each.value.subnet } : null

  worker = {
    replicas  = 3
    port      = each.value.port
    resources = { cpus = 1, memory_mib = 1536 }
    placement = { strategy = "one_per_host" }
  }

  epochs        = 12
  batch_size    = 64
  deadline      = "12h"
  initial_model = each.value.from

  # NFS, so that worker 0 finds its checkpoints on any host.
  mounts      = [{ source = "/mnt/nas", target = "/mnt/nas" }]
  log_dir     = "/mnt/nas/logs/${each.key}"
  model_dir   = "/mnt/nas/models/${each.key}"
  tensorboard = { port = each.value.board, published_port = local.swarm ? 10000 + each.value.board : null, placement = { hosts = ["node1"] } }
}

output "models" {
  description = "The trained models."
  value       = { for name, workload in module.workload : name => workload.model }
}
