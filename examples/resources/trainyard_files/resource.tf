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

# The folder train beside this file, but for what its .gitignore and these patterns leave out.
resource "trainyard_files" "code" {
  cluster  = trainyard_cluster.lab
  name     = "code"
  source   = "${path.module}/train"
  excludes = ["*.ckpt", "/data/"]
}

# A change of the code is another path, and starts the members anew in the same apply.
resource "trainyard_group" "mnist" {
  cluster = trainyard_cluster.lab
  name    = "mnist"
  command = ["sh", "${trainyard_files.code.path}/train.sh"]

  roles = {
    worker = { replicas = 2 }
  }
}
