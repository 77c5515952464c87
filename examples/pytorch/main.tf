# Three ranks learn to read handwritten digits with DistributedDataParallel: as processes on this machine, or, with
# engine = "swarm", as containers on several hosts.

terraform {
  required_version = ">= 1.8"

  required_providers {
    trainyard = {
      source = "trainyard/trainyard"
    }
  }
}

locals {
  swarm   = var.engine == "swarm"
  program = local.swarm ? "/srv/train.py" : abspath("${path.module}/train.py")
  gpus    = var.gpus == null ? null : { pool = one(trainyard_gpu_pool.cards[*].name), count = 1 }
}

resource "trainyard_cluster" "lab" {
  name   = "pytorch-lab"
  engine = var.engine
  hosts  = var.hosts
}

# The only GPUs that ranks may use, one card each.
resource "trainyard_gpu_pool" "cards" {
  count = var.gpus == null ? 0 : 1

  cluster = trainyard_cluster.lab
  name    = "cards"
  devices = var.gpus
}

# Containers get PyTorch from an image, which all hosts have before the group starts.
resource "trainyard_image" "pytorch" {
  count = local.swarm ? 1 : 0

  cluster = trainyard_cluster.lab
  name    = "pytorch:bookworm"
  archive = var.archive
  build   = var.archive == null ? { context = path.module } : null
}

resource "trainyard_group" "ddp" {
  cluster   = trainyard_cluster.lab
  name      = "ddp"
  framework = "pytorch"
  image     = one(trainyard_image.pytorch[*].image_id)
  command   = [var.python, local.program]
  args      = ["--epochs", tostring(var.epochs)]
  env       = { OMP_NUM_THREADS = "1" }

  # Worker 0 has rank 0, and hosts the rendezvous.
  roles = {
    worker = { replicas = var.ranks, port = 29500, gpus = local.gpus }
  }

  # Containers get the program from Terraform: a change restarts the ranks, without a new image.
  container = local.swarm ? {
    init         = true # so that ranks end on SIGTERM
    shm_size_mib = 256
    configs = {
      program = { content = file("${path.module}/train.py"), target = local.program }
    }
  } : null

  # Synchronous training: when a rank fails in a way that is retried, all ranks restart.
  restart_scope = "group"

  # The apply returns when all ranks have completed, the default completion for this framework.
  wait_for = "completed"
}

data "trainyard_logs" "ranks" {
  count = var.ranks

  cluster = trainyard_cluster.lab
  member  = "${trainyard_group.ddp.name}-worker-${count.index}"

  depends_on = [trainyard_group.ddp]
}

data "trainyard_group" "ddp" {
  cluster = trainyard_cluster.lab
  name    = trainyard_group.ddp.name

  depends_on = [trainyard_group.ddp]
}
