# Outputs are part of every plan, so they contain only stable values. Live numbers, such as the utilisation, would
# change every plan: look at them with `terraform console`.

output "phase" {
  description = "Phase of the group: `completed` once the job has finished."
  value       = data.trainyard_group.digits.phase
}

output "accuracy" {
  description = "Accuracy of the trained model on held-out digits, from 0 to 1; null if it was not evaluated."
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
