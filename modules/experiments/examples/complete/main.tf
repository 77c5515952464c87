# 50 experiments on one shared card of a Swarm, with as many at a time as give the highest throughput. Results are on
# NFS, TensorBoard shows them at port 16006 of gpu1, and a chat is notified when a run ends.

terraform {
  required_version = ">= 1.9"

  required_providers {
    trainyard = {
      source  = "trainyard/trainyard"
      version = ">= 0.1.0"
    }
  }
}

variable "started_by" {
  description = "Who starts the experiments."
  type        = string
  default     = "ada"
}

variable "webhook" {
  description = "URL that is called when a run has ended. It is in plain text in the state and with the cluster."
  type        = string
  default     = "https://hooks.example.com/experiments"
  sensitive   = true
}

resource "trainyard_cluster" "lab" {
  name   = "lab"
  engine = "swarm"

  hosts = {
    gpu1 = { address = "ssh://ops@gpu1", role = "manager" }
  }
}

# One slot per experiment's memory. Other processes on the card are allowed: free memory accounts for them.
resource "trainyard_gpu_pool" "a40" {
  cluster             = trainyard_cluster.lab
  name                = "a40"
  select              = { model = "NVIDIA A40" }
  sharing             = "slots"
  memory_mib_per_slot = 1199
  on_foreign_process  = "ignore"
}

# The module's own program with NumPy and TensorBoard, built on the host, without a registry.
resource "trainyard_image" "rl" {
  cluster = trainyard_cluster.lab
  name    = "experiments:1"
  build   = { context = "${path.module}/../../train" }
}

module "pricing" {
  source = "../.."

  cluster    = trainyard_cluster.lab
  name       = "pricing"
  image      = trainyard_image.rl.image_id
  started_by = var.started_by

  # Both agents on the paper's market, with 25 seeds each. Omitted parameters are as in the paper.
  config = { market = { customers = 20, max_storage = 100 }, environment = { episodes = 2000 } }
  runs = {
    q-learning = { environment = { agent = "q_learning" } }
    dqn        = { environment = { agent = "dqn" }, learning = { learning_rate = 0.0001 } }
  }
  seeds = range(25)

  progress  = {}
  resources = { cpus = 0.5, memory_mib = 2300 }
  gpus      = { pool = trainyard_gpu_pool.a40.name, memory_mib = 1199 }

  results     = { path = "/srv/results", collect_to = "results" }
  mounts      = [{ source = "/mnt/nas/results", target = "/srv/results" }]
  tensorboard = { published_port = 16006 }
  on_finish   = { url = var.webhook }
}

data "trainyard_sweep" "pricing" {
  cluster = trainyard_cluster.lab
  name    = module.pricing.name

  depends_on = [module.pricing]
}

output "counts" {
  description = "Number of runs in each state."
  value       = data.trainyard_sweep.pricing.counts
}

output "best" {
  description = "Run with the highest reward so far."
  value       = data.trainyard_sweep.pricing.best
}
