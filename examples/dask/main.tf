# A Dask cluster of a scheduler and workers, and a program that trains on it: as processes on this machine, or, with
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
  listen  = ["--host", "{{ hostname .Address }}", "--no-dashboard"]
}

resource "trainyard_cluster" "lab" {
  name   = "dask-lab"
  engine = var.engine
  hosts  = var.hosts
}

# Containers get Dask from an image, which all hosts have before the group starts.
resource "trainyard_image" "dask" {
  count = local.swarm ? 1 : 0

  cluster = trainyard_cluster.lab
  name    = "dask:cpu"
  archive = var.archive
  build   = var.archive == null ? { context = path.module } : null
}

# There is no framework for Dask: these roles are the example's own.
resource "trainyard_group" "digits" {
  cluster = trainyard_cluster.lab
  name    = "digits"
  image   = one(trainyard_image.dask[*].image_id)

  # Workers and clients find the scheduler via this variable.
  env = { DASK_SCHEDULER_ADDRESS = "tcp://{{ address \"scheduler\" 0 }}" }

  roles = {
    scheduler = {
      port    = var.port
      command = concat([var.dask, "scheduler", "--port", "{{ .Port }}"], local.listen)
      restart = { condition = "always" }
    }
    # Trainyard supervises the workers, so they need no nanny.
    worker = {
      replicas = var.workers
      command  = concat([var.dask, "worker", "--no-nanny", "--nthreads", "1", "--name", "{{ .Name }}", "--worker-port", "{{ .Port }}"], local.listen)
      env      = { OMP_NUM_THREADS = "1" }
      restart  = { condition = "always" } # a worker that loses its scheduler exits, and restarts to find it
      on_scale = "none"                   # workers come and go without restarting other members

      # A worker that Trainyard and its scheduler stop at the same time may hang, and has nothing to save.
      grace_period = "3s"
    }
    client = {
      command = [var.python, local.program, "--rounds", tostring(var.rounds)]
    }
  }

  # Containers get the program from Terraform: a change reruns it, without a new image.
  container = local.swarm ? {
    configs = {
      program = { content = file("${path.module}/train.py"), target = local.program }
    }
  } : null

  # When the client ends, the group has completed: scheduler and workers are stopped.
  completion = { when = "all", roles = ["client"] }
  wait_for   = "completed"
}

data "trainyard_logs" "client" {
  cluster = trainyard_cluster.lab
  member  = "${trainyard_group.digits.name}-client-0"

  depends_on = [trainyard_group.digits]
}

data "trainyard_group" "digits" {
  cluster = trainyard_cluster.lab
  name    = trainyard_group.digits.name

  depends_on = [trainyard_group.digits]
}
