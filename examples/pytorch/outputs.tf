locals {
  # Each rank logs JSON lines; other lines are warnings of libraries. The last evaluation counts if the ranks have
  # started more than once.
  logs    = [for log in data.trainyard_logs.ranks : [for line in log.lines : jsondecode(line) if can(jsondecode(line).rank)]]
  trained = [for lines in local.logs : try(reverse([for line in lines : line if can(line.accuracy)])[0], null)]
}

output "phase" {
  description = "Phase of the group: `completed` once all ranks have finished."
  value       = data.trainyard_group.ddp.phase
}

output "accuracy" {
  description = "Accuracy of the trained model on held-out digits, from 0 to 1."
  value       = try(local.trained[0].accuracy, null)
}

output "ranks" {
  description = "Last evaluation of each rank: the world size, the number of images that it trained on, and a checksum of the parameters, which is the same for all ranks."
  value       = local.trained
}

output "placements" {
  description = "Host of each rank."
  value       = trainyard_group.ddp.placements
}
