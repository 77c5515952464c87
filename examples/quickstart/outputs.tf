# Outputs are part of every plan, so only what stands still is one. Live numbers, such as the utilisation, would make
# each plan differ from the last: look at them with `terraform console`.

output "phase" {
  description = "Phase of the group: `completed` once the job is done."
  value       = data.trainyard_group.digits.phase
}

output "accuracy" {
  description = "Fraction of the held-out digits that the trained model reads rightly; null where it was not evaluated."
  value       = try(local.evaluation.accuracy, null)
}

output "members" {
  description = "Address of each member."
  value       = trainyard_group.digits.members
}

locals {
  # The log is JSON lines. The last evaluation counts, should the chief have started more than once.
  evaluations = [for line in data.trainyard_logs.chief.lines : jsondecode(line) if can(jsondecode(line).examples)]
  evaluation  = try(reverse(local.evaluations)[0], null)
}
