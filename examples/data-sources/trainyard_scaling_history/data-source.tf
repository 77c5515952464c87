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

data "trainyard_scaling_history" "workers" {
  cluster      = trainyard_cluster.lab
  group        = "mnist"
  role         = "worker"
  since        = "24h"
  only_changes = true
}

output "changes" {
  description = "What changed in the last day, and why."
  value = [
    for entry in data.trainyard_scaling_history.workers.entries :
    "${entry.at}: ${entry.from} to ${entry.to} (${entry.outcome}), as ${entry.why}"
  ]
}

output "json_lines" {
  description = "The same as JSON lines, for other programs: terraform output -raw json_lines > history.jsonl"
  value       = data.trainyard_scaling_history.workers.json_lines
}
