locals {
  # The program logs JSON lines; other lines are from Ray. Only its last run counts.
  lines    = [for line in data.trainyard_logs.submit.lines : jsondecode(line) if can(jsondecode(line).event)]
  since    = max(-1, [for i, line in local.lines : i if line.event == "joined"]...)
  searched = one([for i, line in local.lines : line if line.event == "searched" && i > local.since])
}

output "phase" {
  description = "Phase of the group: `completed` once the search has ended."
  value       = data.trainyard_group.search.phase
}

output "accuracy" {
  description = "Fraction of the held-out digits that a network with the best settings reads rightly."
  value       = try(local.searched.accuracy, null)
}

output "searched" {
  description = "What the program said in the end: the best settings, how many were tried, on how many of Ray's nodes."
  value       = local.searched
}

output "placements" {
  description = "The host of each member."
  value       = trainyard_group.search.placements
}
