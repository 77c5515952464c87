output "id" {
  description = "`<cluster>/<sweep>` of the experiments."
  value       = trainyard_sweep.this.id
}

output "name" {
  description = "Name of the sweep, for the data source `trainyard_sweep` and the command `sweep`."
  value       = trainyard_sweep.this.name
}

output "configs" {
  description = "Config of each run as it is stored, in JSON, by the run's key."
  value       = local.configs
}

output "members" {
  description = "Member that each run is, for the data source `trainyard_logs`, by the run's key."
  value       = { for key in keys(local.configs) : key => "${var.name}-${key}-0" }
  depends_on  = [trainyard_sweep.this]
}

output "path" {
  description = "Folder of the program on each host. Null where an image brings it."
  value       = one(trainyard_files.this[*].path)
}

output "tensorboard" {
  description = "URL of TensorBoard, as members reach it. Null where there is none, or while it does not run."
  value       = try("http://${trainyard_group.tensorboard[0].members["${var.name}-tensorboard-web-0"]}", null)
}
