# Placement: parameter servers on the hosts with fast disks, at most one on each; workers on the rest, spread evenly
# over the racks. The engine "process" runs them all on this machine; its hosts are shares of the machine.

terraform {
  required_version = ">= 1.8"

  required_providers {
    trainyard = {
      source = "trainyard/trainyard"
    }
  }
}

resource "trainyard_cluster" "rack" {
  name = "rack"

  hosts = {
    storage-1 = { address = "127.0.0.11", labels = { disk = "nvme" }, capacity = { cpus = 1, memory_mib = 512 } }
    storage-2 = { address = "127.0.0.12", labels = { disk = "nvme" }, capacity = { cpus = 1, memory_mib = 512 } }
    compute-1 = { address = "127.0.0.21", labels = { disk = "none", rack = "a" }, capacity = { cpus = 2, memory_mib = 1024 } }
    compute-2 = { address = "127.0.0.22", labels = { disk = "none", rack = "a" }, capacity = { cpus = 2, memory_mib = 1024 } }
    compute-3 = { address = "127.0.0.23", labels = { disk = "none", rack = "b" }, capacity = { cpus = 2, memory_mib = 1024 } }
  }
}

resource "trainyard_group" "training" {
  cluster   = trainyard_cluster.rack
  name      = "training"
  framework = "tensorflow"
  command   = ["/bin/sleep", "infinity"]

  roles = {
    ps = {
      replicas  = 2
      port      = 8000 # the same on both hosts, as each has its own address
      resources = { cpus = 0.5, memory_mib = 128 }
      placement = { strategy = "one_per_host", labels = { disk = "nvme" } }
    }

    worker = {
      replicas  = 4
      port      = 9000
      resources = { cpus = 0.5, memory_mib = 256 }
      placement = { spread_by = "rack", strategy = "spread", labels = { disk = "none" } }
    }
  }

  completion = { when = "never" }
}

output "placements" {
  description = "Host of each member."
  value       = trainyard_group.training.placements
}

output "addresses" {
  description = "Address of each member."
  value       = trainyard_group.training.members
}
