terraform {
  required_providers {
    trainyard = {
      source = "trainyard/trainyard"
    }
  }
}

resource "trainyard_cluster" "lab" {
  name   = "lab"
  engine = "swarm"

  hosts = {
    gpu1 = { address = "ssh://ops@gpu1", role = "manager" }
    gpu2 = { address = "ssh://ops@gpu2" }
  }
}

# Two GPUs of one host, by UUID: no others are used.
resource "trainyard_gpu_pool" "left" {
  cluster = trainyard_cluster.lab
  name    = "left"

  devices = {
    gpu1 = ["GPU-4fa6a2a8-1a3c-4b1e-9f0e-2c7d8e5b6a91", "GPU-b5a3c1d2-77e0-4d0c-8a55-90f1c2b3d4e5"]
  }
}

# All A40s of the other host, each shared by as many members as fit into its memory.
resource "trainyard_gpu_pool" "shared" {
  cluster = trainyard_cluster.lab
  name    = "shared"
  select  = { model = "NVIDIA A40", hosts = ["gpu2"] }

  sharing             = "slots"
  memory_mib_per_slot = 1199
}

resource "trainyard_group" "training" {
  cluster   = trainyard_cluster.lab
  name      = "training"
  framework = "pytorch"
  image     = "registry.example.com/trainer:1.2"

  roles = {
    worker = {
      replicas = 2
      gpus     = { pool = trainyard_gpu_pool.left.name }
    }
  }
}
