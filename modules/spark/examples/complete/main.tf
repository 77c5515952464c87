# A Swarm whose first host runs the master, the history server and the drivers. Each worker has a GPU; the configuration
# may use two per host. The policy runs no workers while nothing waits, and four for an application. Event logs and the
# data of removed workers are on an NFS export. Prometheus monitors all of it.

terraform {
  required_version = ">= 1.11"

  required_providers {
    trainyard = {
      source  = "trainyard/trainyard"
      version = ">= 0.1.0"
    }
  }
}

variable "commit" {
  description = "Commit of the programs. A new one submits them again."
  type        = string
  default     = "1"
}

locals {
  cpu = { labels = { kind = "cpu" } }
}

resource "trainyard_cluster" "lab" {
  name   = "lab"
  engine = "swarm"

  hosts = {
    cpu1 = { address = "ssh://ops@cpu1", role = "manager", labels = { kind = "cpu" } }
    gpu1 = { address = "ssh://ops@gpu1", labels = { kind = "gpu" } }
    gpu2 = { address = "ssh://ops@gpu2", labels = { kind = "gpu" } }
  }
}

resource "trainyard_gpu_pool" "spark" {
  cluster = trainyard_cluster.lab
  name    = "spark"
  select  = { max_per_host = 2 }
}

# Built on one host, and copied to the others.
resource "trainyard_image" "spark" {
  cluster = trainyard_cluster.lab
  name    = "spark:gpu"
  build   = { context = "${path.module}/../..", dockerfile = "Dockerfile.gpu" }
}

module "spark" {
  source = "../.."

  cluster = trainyard_cluster.lab
  image   = trainyard_image.spark.image_id
  mounts  = [{ source = "/mnt/nas/spark", target = "/srv/nas" }]

  master = { published_port = 8080, recovery_dir = "/srv/nas/recovery", placement = local.cpu }

  worker = {
    cores      = 8
    memory_mib = 32768
    resources  = { cpus = 8, memory_mib = 49152 }
    gpus       = { pool = trainyard_gpu_pool.spark.name }
  }

  autoscale = { min = 0, max = 4, workers_per_application = 4, applications = { fares = 2 } }

  rapids      = { jar = "/opt/rapids-4-spark.jar" }
  history     = { dir = "/srv/nas/events", published_port = 18080, placement = local.cpu }
  shuffle_dir = "/srv/nas/shuffle"
}

module "arrears" {
  source = "../../submit"

  spark    = module.spark
  name     = "arrears"
  program  = "classification.py"
  env      = { ROWS = "20000000", ROUNDS = "100", MODEL = "/srv/nas/models/arrears" }
  driver   = { memory_mib = 4096, placement = local.cpu }
  triggers = { commit = var.commit }
  wait_for = "running"
  deadline = "2h"
}

module "fares" {
  source = "../../submit"

  spark    = module.spark
  name     = "fares"
  program  = "regression.py"
  env      = { ROWS = "20000000", ROUNDS = "100", MODEL = "/srv/nas/models/fares" }
  driver   = { memory_mib = 4096, placement = local.cpu }
  triggers = { commit = var.commit }
  wait_for = "running"
  deadline = "2h"
}

# Prometheus, with the usage of workers and their GPUs, and with the applications that the master reports.
module "monitoring" {
  source = "../../../monitoring"

  cluster   = trainyard_cluster.lab
  placement = local.cpu

  scrape_configs = [{ job_name = "spark", metrics_path = "/metrics/prometheus", static_configs = [{ targets = ["spark-master-0:8080"] }] }]
}

output "drivers" {
  description = "Members whose logs report on training."
  value       = [module.arrears.driver, module.fares.driver]
}
