# A Swarm of three hosts: parameter servers on the one without GPUs, workers on the cards of the others, as many as make
# training faster. Checkpoints and summaries are on NFS, and TensorBoard shows them at port 16006 of cpu1.

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
  engine = "swarm"

  hosts = {
    cpu1 = { address = "ssh://ops@cpu1", role = "manager", labels = { kind = "cpu" } }
    gpu1 = { address = "ssh://ops@gpu1", labels = { kind = "gpu" } }
    gpu2 = { address = "ssh://ops@gpu2", labels = { kind = "gpu" } }
  }
}

resource "trainyard_gpu_pool" "training" {
  cluster = trainyard_cluster.lab
  name    = "training"
  select  = { max_per_host = 2 }
}

# TensorFlow's own images don't include TensorBoard.
resource "trainyard_image" "tensorboard" {
  cluster = trainyard_cluster.lab
  name    = "tensorboard:1"
  build   = { context = "${path.module}/../.." }
}

module "mnist" {
  source = "../.."

  cluster   = trainyard_cluster.lab
  name      = "mnist"
  framework = "tensorflow"
  image     = "tensorflow/tensorflow:2.21.0-gpu"

  ps = {
    replicas  = 2
    resources = { cpus = 1, memory_mib = 1024 }
    placement = { labels = { kind = "cpu" } }
  }

  chief = {
    resources = { cpus = 1, memory_mib = 1024 }
    placement = { labels = { kind = "cpu" } }
  }

  worker = {
    resources = { cpus = 2, memory_mib = 4096 }
    gpus      = { pool = trainyard_gpu_pool.training.name }
  }

  batch_size    = 64
  learning_rate = 0.001
  hidden_units  = 1000
  train_steps   = 200000
  deadline      = "12h"

  # Adds workers until one more gains less than a tenth of what each has contributed so far.
  autoscale = { min = 1, max = 4, threshold = 0.1, settle = "2m" }

  log_dir = "/srv/mnist"
  mounts  = [{ source = "/mnt/nas/mnist", target = "/srv/mnist" }]

  tensorboard = {
    image          = trainyard_image.tensorboard.image_id
    published_port = 16006
    placement      = { hosts = ["cpu1"] }
  }
}

output "chief" {
  description = "The member whose log reports the progress of training."
  value       = module.mnist.chief
}
