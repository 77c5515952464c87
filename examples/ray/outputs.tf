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
  description = "Accuracy of a network with the best settings on held-out digits, from 0 to 1."
  value       = try(local.searched.accuracy, null)
}

output "searched" {
  description = "Last line of the program's log: the best settings, how many were tried, and on how many Ray nodes."
  value       = local.searched
}

output "placements" {
  description = "Host of each member."
  value       = trainyard_group.search.placements
}
