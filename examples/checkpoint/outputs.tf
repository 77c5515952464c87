locals {
  # The program logs JSON lines; other lines are warnings of libraries.
  lines = [for line in data.trainyard_logs.worker.lines : jsondecode(line) if can(jsondecode(line).event)]
  last  = try(reverse(local.lines)[0], null)
}

output "phase" {
  description = "Phase of the group: `completed` once the model is trained."
  value       = data.trainyard_group.digits.phase
}

output "starts" {
  description = "Number of epochs already done at each start of the training."
  value       = [for line in local.lines : line.epoch if contains(["began", "resumed"], line.event)]
}

output "trained" {
  description = "Last line of the program's log: the accuracy, and a checksum of the weights, which is the same even after a crash."
  value       = try(local.last.event == "trained" ? local.last : null, null)
}
