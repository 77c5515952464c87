# Outputs are part of every plan, so they contain only stable values. Live numbers, such as the utilisation, would
# change every plan: look at them with `terraform console`.

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
  # The log is JSON lines. The last evaluation counts if the chief has started more than once.
  evaluations = [for line in data.trainyard_logs.chief.lines : jsondecode(line) if can(jsondecode(line).examples)]
  evaluation  = try(reverse(local.evaluations)[0], null)
}
