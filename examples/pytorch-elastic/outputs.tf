locals {
  # Ranks log JSON lines; other lines are from torchrun.
  lines = [for line in data.trainyard_logs.first.lines : jsondecode(line) if can(jsondecode(line).event)]
  last  = try(reverse(local.lines)[0], null)
}

output "phase" {
  description = "Phase of the group: `completed` once the ranks have trained."
  value       = data.trainyard_group.digits.phase
}

output "trained" {
  description = "What the rank in worker 0 said in the end: the accuracy, and how many ranks there were."
  value       = try(local.last.event == "trained" ? local.last : null, null)
}
