output "id" {
  description = "`<cluster>/<group>` of the group."
  value       = trainyard_group.this.id
}

output "cluster" {
  description = "Cluster of the group, for data sources: the input `cluster`, or with `network` the separate cluster."
  value       = local.training
  depends_on  = [trainyard_group.this]
}

output "chief" {
  description = "Name of the member that reads and writes files: worker 0."
  value       = "${var.name}-worker-0"
  depends_on  = [trainyard_group.this]
}

output "members" {
  description = "Address (`host:port`) of each member, by name."
  value       = trainyard_group.this.members
}

output "placements" {
  description = "Host of each member, and its GPUs, by the member's name."
  value       = trainyard_group.this.placements
}

output "path" {
  description = "Folder of the program on each host. Null on `swarm`, and for a `command` without `files`."
  value       = one(trainyard_files.this[*].path)
}

output "model" {
  description = "Path of the trained model, as worker 0 sees it. Null without `model_dir`."
  value       = var.model_dir == null ? null : "${var.model_dir}/model.keras"
  depends_on  = [trainyard_group.this]
}

output "tensorboard" {
  description = "URL of TensorBoard, as members reach it. Null without `tensorboard`, or while TensorBoard is not running."
  value       = try("http://${trainyard_group.tensorboard[0].members["${var.name}-tensorboard-web-0"]}", null)
}
