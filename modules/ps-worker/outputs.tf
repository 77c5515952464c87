output "id" {
  description = "`<cluster>/<group>` of the group."
  value       = trainyard_group.this.id
}

output "chief" {
  description = "Name of the member whose log tells of training: worker 0, or the coordinator with `framework = \"tensorflow\"`."
  value       = local.chief
  depends_on  = [trainyard_group.this]
}

output "members" {
  description = "Address (`host:port`) of each member, by its name."
  value       = trainyard_group.this.members
}

output "placements" {
  description = "Host of each member, and its GPUs, by its name."
  value       = trainyard_group.this.placements
}

output "path" {
  description = "Folder of the program on each host. Null where an image brings it."
  value       = one(trainyard_files.this[*].path)
}

output "policy" {
  description = "`<cluster>/<group>/<role>` of the autoscaling policy. Null where there is none."
  value       = one(trainyard_autoscaling_policy.this[*].id)
}

output "tensorboard" {
  description = "URL of TensorBoard, as members reach it. Null where there is none, or while it does not run."
  value       = try("http://${trainyard_group.tensorboard[0].members["${var.name}-tensorboard-web-0"]}", null)
}
