locals {
  # Each rank logs JSON lines; other lines are warnings of libraries. The last evaluation counts if the ranks have
  # started more than once.
  logs    = [for log in data.trainyard_logs.ranks : [for line in log.lines : jsondecode(line) if can(jsondecode(line).rank)]]
  trained = [for lines in local.logs : try(reverse([for line in lines : line if can(line.accuracy)])[0], null)]
}

output "phase" {
  description = "Phase of the group: `completed` once the ranks have trained."
  value       = data.trainyard_group.ddp.phase
}

output "accuracy" {
  description = "Fraction of the held-out digits that the trained model reads rightly."
  value       = try(local.trained[0].accuracy, null)
}

output "ranks" {
  description = "What each rank said in the end: the world's size, how many images it has learnt from, and a checksum of the parameters, which is the same for all."
  value       = local.trained
}

output "placements" {
  description = "The host of each rank."
  value       = trainyard_group.ddp.placements
}
