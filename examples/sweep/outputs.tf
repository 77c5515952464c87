output "best" {
  description = "Run with the highest accuracy."
  value       = data.trainyard_sweep.lr.best
}

output "learning_rate" {
  description = "Learning rate of the best run."
  value       = try(local.runs[data.trainyard_sweep.lr.best].LR, null)
}

output "ranking" {
  description = "The ten best runs with their accuracy."
  value = [
    for key in slice(local.ranking, 0, min(10, length(local.ranking))) : "${key}  ${format("%.4f", local.accuracy[key])}"
  ]
}

# The best run may have been lucky: compare means over the seeds.
output "mean_accuracy" {
  description = "Mean accuracy by learning rate."
  value       = { for lr, values in local.by_learning_rate : lr => format("%.4f", sum(values) / length(values)) }
}

locals {
  ranking          = data.trainyard_sweep.lr.ranking
  accuracy         = { for key in local.ranking : key => data.trainyard_sweep.lr.runs[key].value }
  by_learning_rate = { for key in local.ranking : tostring(local.runs[key].LR) => local.accuracy[key]... }
}
