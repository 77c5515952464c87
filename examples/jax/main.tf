# Three processes learn to read handwritten digits with jax.distributed: as processes of this machine, or, with
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
  ranks   = 3
  swarm   = var.engine == "swarm"
  program = local.swarm ? "/srv/train.py" : abspath("${path.module}/train.py")
}

resource "trainyard_cluster" "lab" {
  name   = "jax-lab"
  engine = var.engine
  hosts  = var.hosts
}

# Containers have JAX from an image, which all hosts have before the group starts.
resource "trainyard_image" "jax" {
  count = local.swarm ? 1 : 0

  cluster = trainyard_cluster.lab
  name    = "jax:cpu"
  archive = var.archive
  build   = var.archive == null ? { context = path.module } : null
}

resource "trainyard_group" "spmd" {
  cluster   = trainyard_cluster.lab
  name      = "spmd"
  framework = "jax"
  image     = one(trainyard_image.jax[*].image_id)
  command   = [var.python, local.program]
  args      = ["--epochs", tostring(var.epochs)]

  # JAX catches SIGTERM, for programs that save a checkpoint then. This one has none: it ends at once.
  env = { JAX_ENABLE_PREEMPTION_SERVICE = "false" }

  # Worker 0 is process 0, and runs the coordinator at its port. Which port that is doesn't matter, if it is free.
  roles = {
    worker = { replicas = local.ranks, port = 1234 }
  }

  # They have the program from Terraform: a change to it starts the processes anew, without another image.
  container = local.swarm ? {
    configs = {
      program = { content = file("${path.module}/train.py"), target = local.program }
    }
  } : null

  # No process can join those that run: one that fails takes all others back to the start.
  restart_scope = "group"

  # The apply returns when all processes have completed, which is this framework's default for completion.
  wait_for = "completed"
}

data "trainyard_logs" "ranks" {
  count = local.ranks

  cluster = trainyard_cluster.lab
  member  = "${trainyard_group.spmd.name}-worker-${count.index}"

  depends_on = [trainyard_group.spmd]
}

data "trainyard_group" "spmd" {
  cluster = trainyard_cluster.lab
  name    = trainyard_group.spmd.name

  depends_on = [trainyard_group.spmd]
}
