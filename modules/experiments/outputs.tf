output "id" {
  description = "`<cluster>/<sweep>` of the sweep."
  value       = trainyard_sweep.this.id
}

output "name" {
  description = "Name of the sweep, for the data source `trainyard_sweep` and the command `sweep`."
  value       = trainyard_sweep.this.name
}

output "configs" {
  description = "Config of each run as stored, in JSON, by run key."
  value       = local.configs
}

output "members" {
  description = "Member name of each run, for the data source `trainyard_logs`, by run key."
  value       = { for key in local.keys : key => "${var.name}-${key}-0" }
  depends_on  = [trainyard_sweep.this]
}

output "path" {
  description = "Folder of the program on each host. Null on `swarm`, and for a `command` without `files`."
  value       = one(trainyard_files.this[*].path)
}

output "tensorboard" {
  description = "URL of TensorBoard, as members reach it. Null without `tensorboard`, or while TensorBoard is not running."
  value       = try("http://${trainyard_group.tensorboard[0].members["${var.name}-tensorboard-web-0"]}", null)
}
