# Training that resumes from its last checkpoint after a crash: with a folder on this machine, or, with engine =
# "swarm", in a container with a volume that all hosts can reach.

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
  folder  = local.swarm ? "/checkpoints" : abspath(var.folder)
}

resource "trainyard_cluster" "lab" {
  name   = "checkpoint-lab"
  engine = var.engine
  hosts  = var.hosts
}

# Containers get the program's dependencies from an image, which all hosts have before the group starts.
resource "trainyard_image" "digits" {
  count = local.swarm ? 1 : 0

  cluster = trainyard_cluster.lab
  name    = "checkpoint:cpu"
  archive = var.archive
  build   = var.archive == null ? { context = path.module } : null
}

resource "trainyard_group" "digits" {
  cluster = trainyard_cluster.lab
  name    = "digits"
  image   = one(trainyard_image.digits[*].image_id)
  command = [var.python, local.program, "--folder", local.folder, "--epochs", tostring(var.epochs)]
  env     = { OMP_NUM_THREADS = "1" }

  roles = {
    worker = { replicas = 1 }
  }

  # Each host creates the volume when first needed. With such a driver all hosts share the same storage, so the worker
  # finds its checkpoint on any of them. A destroy of the group removes neither the volume nor the folder.
  mounts = [{
    type   = local.swarm ? "volume" : "bind"
    source = local.swarm ? "checkpoints" : local.folder
    target = local.folder
    driver = local.swarm ? var.driver : null
  }]

  # The program comes from Terraform: a change restarts it, without a new image.
  container = local.swarm ? {
    init = true # as PID 1 the program would ignore SIGTERM, and run until the grace period is over
    configs = {
      program = { content = file("${path.module}/train.py"), target = local.program }
    }
  } : null

  wait_for = "completed"
}

data "trainyard_logs" "worker" {
  cluster = trainyard_cluster.lab
  member  = "${trainyard_group.digits.name}-worker-0"
  tail    = 0 # all lines: the starts may be long ago

  depends_on = [trainyard_group.digits]
}

data "trainyard_group" "digits" {
  cluster = trainyard_cluster.lab
  name    = trainyard_group.digits.name

  depends_on = [trainyard_group.digits]
}
