output "id" {
  description = "`<cluster>/<group>` of the group."
  value       = trainyard_group.this.id
}

output "chief" {
  description = "Name of the member whose log reports the progress of training: worker 0, or the coordinator with `framework = \"tensorflow\"`."
  value       = local.chief
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

output "policy" {
  description = "`<cluster>/<group>/<role>` of the autoscaling policy. Null without `autoscale`."
  value       = one(trainyard_autoscaling_policy.this[*].id)
}

output "tensorboard" {
  description = "URL of TensorBoard, as members reach it. Null without `tensorboard`, or while TensorBoard is not running."
  value       = try("http://${trainyard_group.tensorboard[0].members["${var.name}-tensorboard-web-0"]}", null)
}
