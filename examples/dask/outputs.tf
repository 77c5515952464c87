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
  description = "Fraction of the held-out digits that the trained model reads rightly."
  value       = try(local.trained.accuracy, null)
}

output "trained" {
  description = "What the program said in the end: the accuracy, and a checksum of the weights, which is the same whoever learnt."
  value       = local.trained
}

output "placements" {
  description = "The host of each member."
  value       = trainyard_group.digits.placements
}
