locals {
  # Ranks log JSON lines; other lines are from torchrun.
  lines = [for line in data.trainyard_logs.first.lines : jsondecode(line) if can(jsondecode(line).event)]
  last  = try(reverse(local.lines)[0], null)
}

output "phase" {
  description = "Phase of the group: `completed` once all ranks have finished."
  value       = data.trainyard_group.digits.phase
}

output "trained" {
  description = "Last line of the log of the rank in worker 0: the accuracy, and the number of ranks."
  value       = try(local.last.event == "trained" ? local.last : null, null)
}
