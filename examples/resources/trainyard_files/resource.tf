terraform {
  required_providers {
    trainyard = {
      source = "trainyard/trainyard"
    }
  }
}

resource "trainyard_cluster" "lab" {
  name = "lab"
}

# The folder train beside this file, except for what its .gitignore and these patterns exclude.
resource "trainyard_files" "code" {
  cluster  = trainyard_cluster.lab
  name     = "code"
  source   = "${path.module}/train"
  excludes = ["*.ckpt", "/data/"]
}

# Changed code gets a new path, and restarts the members in the same apply.
resource "trainyard_group" "mnist" {
  cluster = trainyard_cluster.lab
  name    = "mnist"
  command = ["sh", "${trainyard_files.code.path}/train.sh"]

  roles = {
    worker = { replicas = 2 }
  }
}
