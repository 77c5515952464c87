locals {
  # Ranks log JSON lines, in any order; other lines are from Hydra. Only the last start counts.
  lines = [for line in data.trainyard_logs.launcher.lines : jsondecode(line) if can(jsondecode(line).event)]
  since = max(-1, [for i, line in local.lines : i if line.event == "joined"]...)
  trained = [
    for rank in range(var.workers) : one([for i, line in local.lines : line if line.event == "trained" && line.rank == rank && i > local.since])
  ]
}

output "phase" {
  description = "Phase of the group: `completed` once all ranks have finished."
  value       = data.trainyard_group.digits.phase
}

output "accuracy" {
  description = "Accuracy of the trained model on held-out digits, from 0 to 1."
  value       = try(local.trained[0].accuracy, null)
}

output "ranks" {
  description = "Last evaluation of each rank: the worker that it ran in, and the last loss and a checksum of the parameters, which are the same for all ranks."
  value       = local.trained
}

output "placements" {
  description = "Host of each member."
  value       = trainyard_group.digits.placements
}
