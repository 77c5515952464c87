terraform {
  required_providers {
    trainyard = {
      source = "trainyard/trainyard"
    }
  }
}

# This machine, with all its resources.
resource "trainyard_cluster" "lab" {
  name = "lab"
}

# Three hosts on this machine, each with a share of it, to try out placement.
resource "trainyard_cluster" "rack" {
  name   = "rack"
  engine = "process"

  hosts = {
    node-1 = { address = "127.0.0.1", capacity = { cpus = 0.5, memory_mib = 512 }, labels = { disk = "ssd" } }
    node-2 = { address = "127.0.0.2", capacity = { cpus = 0.5, memory_mib = 512 }, labels = { disk = "ssd" } }
    node-3 = { address = "127.0.0.3", capacity = { cpus = 1, memory_mib = 1024 } }
  }
}
