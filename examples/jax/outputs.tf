locals {
  # Each process logs JSON lines; other lines are warnings of libraries. The last evaluation counts if the processes
  # have started more than once.
  logs    = [for log in data.trainyard_logs.ranks : [for line in log.lines : jsondecode(line) if can(jsondecode(line).rank)]]
  trained = [for lines in local.logs : try(reverse([for line in lines : line if can(line.accuracy)])[0], null)]
}

output "phase" {
  description = "Phase of the group: `completed` once the processes have trained."
  value       = data.trainyard_group.spmd.phase
}

output "accuracy" {
  description = "Fraction of the held-out digits that the trained model reads rightly."
  value       = try(local.trained[0].accuracy, null)
}

output "ranks" {
  description = "What each process said in the end: the number of processes, how many images it has learnt from, and the last loss and a checksum of the parameters, which are the same for all."
  value       = local.trained
}

output "placements" {
  description = "The host of each process."
  value       = trainyard_group.spmd.placements
}
