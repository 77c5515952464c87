locals {
  # Ranks log JSON lines, in any order; other lines are from Hydra. Only the last start counts.
  lines = [for line in data.trainyard_logs.launcher.lines : jsondecode(line) if can(jsondecode(line).event)]
  since = max(-1, [for i, line in local.lines : i if line.event == "joined"]...)
  trained = [
    for rank in range(var.workers) : one([for i, line in local.lines : line if line.event == "trained" && line.rank == rank && i > local.since])
  ]
}

output "phase" {
  description = "Phase of the group: `completed` once the ranks have trained."
  value       = data.trainyard_group.digits.phase
}

output "accuracy" {
  description = "Fraction of the held-out digits that the trained model reads rightly."
  value       = try(local.trained[0].accuracy, null)
}

output "ranks" {
  description = "What each rank said in the end: in which worker it ran, and the last loss and a checksum of the parameters, which are the same for all."
  value       = local.trained
}

output "placements" {
  description = "The host of each member."
  value       = trainyard_group.digits.placements
}
