data "trainyard_logs" "worker" {
  cluster = var.cluster
  member  = "${trainyard_group.training.name}-worker-0"

  depends_on = [trainyard_group.training]
}

locals {
  lines = [for line in data.trainyard_logs.worker.lines : jsondecode(line) if can(jsondecode(line).loss) || can(jsondecode(line).accuracy)]
}

output "accuracy" {
  description = "Accuracy of the model on held-out digits, from 0 to 1."
  value       = try(reverse([for line in local.lines : line.accuracy if can(line.accuracy)])[0], null)
}

output "resumed_at" {
  description = "Number of epochs in the checkpoint that training resumed from."
  value       = try(reverse([for line in local.lines : line.resumed_at if can(line.accuracy)])[0], null)
}
