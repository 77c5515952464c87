# Three processes learn to read handwritten digits with jax.distributed: as processes on this machine, or, with
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

# Containers get JAX from an image, which all hosts have before the group starts.
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

  # JAX catches SIGTERM, for programs that then save a checkpoint. This one saves none: end it at once.
  env = { JAX_ENABLE_PREEMPTION_SERVICE = "false" }

  # Worker 0 is process 0, and runs the coordinator on its port. Any free port will do.
  roles = {
    worker = { replicas = local.ranks, port = 1234 }
  }

  # Containers get the program from Terraform: a change restarts the processes, without a new image.
  container = local.swarm ? {
    init = true # so that processes end on SIGTERM
    configs = {
      program = { content = file("${path.module}/train.py"), target = local.program }
    }
  } : null

  # No process can join a running training: a failure restarts all of them.
  restart_scope = "group"

  # The apply returns when all processes have completed, the default completion for this framework.
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
