# A training that goes on from its last checkpoint after its death: in a folder of this machine, or, with
# engine = "swarm", in a container with a volume that all hosts reach.

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

# Containers have what the program needs from an image, which all hosts have before the group starts.
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

  # Each host makes the volume when it first needs it. With such a driver it is the same storage on all, so that the worker
  # finds its checkpoint wherever it is. Neither the volume nor the folder goes with the group.
  mounts = [{
    type   = local.swarm ? "volume" : "bind"
    source = local.swarm ? "checkpoints" : local.folder
    target = local.folder
    driver = local.swarm ? var.driver : null
  }]

  # The program comes from Terraform: a change to it starts it anew, without another image.
  container = local.swarm ? {
    init = true # a first process would ignore SIGTERM, and go on until the grace period is over
    configs = {
      program = { content = file("${path.module}/train.py"), target = local.program }
    }
  } : null

  wait_for = "completed"
}

data "trainyard_logs" "worker" {
  cluster = trainyard_cluster.lab
  member  = "${trainyard_group.digits.name}-worker-0"
  tail    = 0 # the starts may be long ago

  depends_on = [trainyard_group.digits]
}

data "trainyard_group" "digits" {
  cluster = trainyard_cluster.lab
  name    = trainyard_group.digits.name

  depends_on = [trainyard_group.digits]
}
