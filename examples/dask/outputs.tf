locals {
  # The program logs JSON lines; other lines are from Dask. Only its last run counts.
  lines   = [for line in data.trainyard_logs.client.lines : jsondecode(line) if can(jsondecode(line).event)]
  since   = max(-1, [for i, line in local.lines : i if line.event == "joined"]...)
  trained = one([for i, line in local.lines : line if line.event == "trained" && i > local.since])
}

output "phase" {
  description = "Phase of the group: `completed` once the model is trained."
  value       = data.trainyard_group.digits.phase
}

output "accuracy" {
  description = "Accuracy of the trained model on held-out digits, from 0 to 1."
  value       = try(local.trained.accuracy, null)
}

output "trained" {
  description = "Last line of the program's log: the accuracy, and a checksum of the weights, which is the same whichever workers trained."
  value       = local.trained
}

output "placements" {
  description = "Host of each member."
  value       = trainyard_group.digits.placements
}
