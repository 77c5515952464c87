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
  description = "How many epochs were done each time that the training was started."
  value       = [for line in local.lines : line.epoch if contains(["began", "resumed"], line.event)]
}

output "trained" {
  description = "What the program said in the end: the accuracy, and a checksum of the weights, which no death changes."
  value       = try(local.last.event == "trained" ? local.last : null, null)
}
