# A Ray cluster of a head and workers, and a program that runs a search on it: as processes on this machine, or, with
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
  program = local.swarm ? "/srv/search.py" : abspath("${path.module}/search.py")
  search  = [var.python, local.program, "--trials", tostring(var.trials)]

  # The head computes nothing itself. Each member has a separate folder for Ray's files, sockets included: nodes that
  # start at the same time on one machine would use the same ones.
  head   = ["--head", "--port={{ .Port }}", "--num-cpus=0", "--include-dashboard=false"]
  worker = ["--address={{ address \"head\" 0 }}", "--num-cpus=1"]

  # In a container, Ray advertises the address of the default route, where no member can reach it: use the address of
  # the host name instead. And a driver program needs a Ray node beside it: on this machine that is the head, in a
  # container it is a node without CPUs.
  start     = "ray start --node-ip-address=\"$(hostname -i)\""
  container = ["sh", "-c", "exec ${local.start} --block \"$@\"", "ray"]
  submit    = ["sh", "-c", "${local.start} --address=\"$RAY_ADDRESS\" --num-cpus=0 && exec \"$@\"", "submit"]
}

resource "trainyard_cluster" "lab" {
  name   = "ray-lab"
  engine = var.engine
  hosts  = var.hosts
}

# Containers get Ray from an image, which all hosts have before the group starts.
resource "trainyard_image" "ray" {
  count = local.swarm ? 1 : 0

  cluster = trainyard_cluster.lab
  name    = "ray:cpu"
  archive = var.archive
  build   = var.archive == null ? { context = path.module } : null
}

resource "trainyard_group" "search" {
  cluster   = trainyard_cluster.lab
  name      = "search"
  framework = "ray"
  image     = one(trainyard_image.ray[*].image_id)
  env       = { RAY_USAGE_STATS_ENABLED = "0" }

  roles = {
    head = {
      port    = var.port
      command = local.swarm ? local.container : [var.ray, "start", "--block", "--temp-dir=${var.temp_dir}/{{ .Name }}"]
      args    = local.head
      restart = { condition = "always" }
    }
    worker = {
      replicas = var.workers
      command  = local.swarm ? local.container : [var.ray, "start", "--block", "--temp-dir=${var.temp_dir}/{{ .Name }}"]
      args     = local.worker
      restart  = { condition = "always" } # a worker that loses its head exits, and restarts to find it
    }
    # When it ends, the group has completed: head and workers are stopped.
    submit = {
      command = concat(local.swarm ? local.submit : [], local.search)
    }
  }

  # Containers get the program from Terraform: a change reruns it, without a new image.
  container = local.swarm ? {
    shm_size_mib = 1024 # where Ray keeps objects
    configs = {
      program = { content = file("${path.module}/search.py"), target = local.program }
    }
  } : null

  wait_for = "completed"
}

data "trainyard_logs" "submit" {
  cluster = trainyard_cluster.lab
  member  = "${trainyard_group.search.name}-submit-0"

  depends_on = [trainyard_group.search]
}

data "trainyard_group" "search" {
  cluster = trainyard_cluster.lab
  name    = trainyard_group.search.name

  depends_on = [trainyard_group.search]
}
