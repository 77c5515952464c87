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

data "trainyard_gpus" "now" {
  cluster = trainyard_cluster.lab
}

output "uuids" {
  description = "UUIDs of each host's GPUs; null if they are unknown."
  value       = { for name, host in data.trainyard_gpus.now.hosts : name => host.gpus[*].uuid }
}

output "foreign" {
  description = "Processes that use GPUs and belong to no member of the cluster."
  value = flatten([
    for name, host in data.trainyard_gpus.now.hosts : [
      for gpu in coalesce(host.gpus, []) : [
        for process in coalesce(gpu.processes, []) : "host ${name}, ${gpu.uuid}: process ${process.pid}" if process.member == null
      ]
    ]
  ])
}
