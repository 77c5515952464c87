# A Ray cluster of a head and workers, and a program that searches on it: as processes of this machine, or, with
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

  # The head computes nothing itself. What Ray keeps on disk, its sockets among it, is apart for each member: on one
  # machine, nodes that start at the same time would take the same ones.
  head   = ["--head", "--port={{ .Port }}", "--num-cpus=0", "--include-dashboard=false"]
  worker = ["--address={{ address \"head\" 0 }}", "--num-cpus=1"]

  # In a container Ray takes the address that leads out of the host, where nobody finds it: the host name's is the right
  # one. And a program needs a node of Ray beside it, which is the head on one machine, and one without CPUs here.
  start     = "ray start --node-ip-address=\"$(hostname -i)\""
  container = ["sh", "-c", "exec ${local.start} --block \"$@\"", "ray"]
  submit    = ["sh", "-c", "${local.start} --address=\"$RAY_ADDRESS\" --num-cpus=0 && exec \"$@\"", "submit"]
}

resource "trainyard_cluster" "lab" {
  name   = "ray-lab"
  engine = var.engine
  hosts  = var.hosts
}

# Containers have Ray from an image, which all hosts have before the group starts.
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
      restart  = { condition = "always" } # a worker that lost its head ends, and looks for it again
    }
    # Its end is that of the group: head and workers are stopped.
    submit = {
      command = concat(local.swarm ? local.submit : [], local.search)
    }
  }

  # They have the program from Terraform: a change to it runs it again, without another image.
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
