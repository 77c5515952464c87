# Two parameter servers and four workers learn to read handwritten digits: as processes on this machine, or on several
# hosts, in containers with engine = "swarm", or as systemd units with engine = "systemd".

terraform {
  required_version = ">= 1.8"

  required_providers {
    trainyard = {
      source  = "trainyard/trainyard"
      version = ">= 0.1.0"
    }
  }
}

provider "trainyard" {
  ssh = var.ssh
}

locals {
  as_service = var.completion == "never"
  swarm      = var.engine == "swarm"
  systemd    = var.engine == "systemd"
  trainer    = coalesce(var.trainer, abspath("${path.module}/digits-trainer"))
}

resource "trainyard_cluster" "lab" {
  name   = "lab"
  engine = var.engine
  hosts  = var.hosts
}

# Containers run the trainer from an image that contains nothing else. All hosts have it before the group starts.
resource "trainyard_image" "trainer" {
  count = local.swarm ? 1 : 0

  cluster = trainyard_cluster.lab
  name    = "digits-trainer"
  build   = { context = path.module }
}

# Bare hosts get the trainer's file, under the same path on each.
resource "trainyard_files" "trainer" {
  count = local.systemd ? 1 : 0

  cluster  = trainyard_cluster.lab
  name     = "digits-trainer"
  source   = dirname(local.trainer)
  excludes = ["/*", "!/${basename(local.trainer)}"]
}

resource "trainyard_group" "digits" {
  cluster   = trainyard_cluster.lab
  name      = "digits"
  framework = "tensorflow" # each member finds its place in TF_CONFIG

  image   = one(trainyard_image.trainer[*].image_id)
  command = local.swarm ? null : [local.systemd ? "${trainyard_files.trainer[0].path}/${basename(local.trainer)}" : local.trainer]
  args    = local.as_service ? ["-steps", "0", "-step-interval", "50ms", "-log-every", "20"] : ["-steps", tostring(var.steps)]

  roles = {
    ps     = { replicas = 2, port = 8000 }
    worker = { replicas = 4, port = 9000 }
  }

  # As a job, the apply waits until the chief, worker 0, has trained and evaluated. As a service, it waits until all
  # members run, and they keep running when Terraform has exited.
  completion = { when = var.completion }
  wait_for   = local.as_service ? "running" : "completed"
}

# Values that change by themselves are read, not managed: after the group has done its work, due to depends_on.

data "trainyard_group" "digits" {
  cluster = trainyard_cluster.lab
  name    = trainyard_group.digits.name

  depends_on = [trainyard_group.digits]
}

data "trainyard_logs" "chief" {
  cluster = trainyard_cluster.lab
  member  = "${trainyard_group.digits.name}-worker-0"
  tail    = 20

  depends_on = [trainyard_group.digits]
}

data "trainyard_utilisation" "now" {
  cluster = trainyard_cluster.lab

  depends_on = [trainyard_group.digits]
}
