locals {
  lines = [for line in data.trainyard_logs.worker.lines : jsondecode(line) if can(jsondecode(line).event)]
}

output "phase" {
  description = "Phase of the group: `completed` once the model is trained."
  value       = data.trainyard_group.digits.phase
}

output "starts" {
  description = "From which epoch on the training went each time that it was started, on which host."
  value       = [for line in local.lines : { epoch = line.epoch, host = line.host } if contains(["began", "resumed"], line.event)]
}

output "trained" {
  description = "What the program said in the end: the accuracy, and a checksum of the weights, which no death changes."
  value       = try(reverse([for line in local.lines : line if line.event == "trained"])[0], null)
}
