output "id" {
  description = "`<cluster>/<group>` of the group."
  value       = trainyard_group.this.id
}

output "driver" {
  description = "Name of the driver, whose log is the application's."
  value       = "${var.name}-driver-0"
  depends_on  = [trainyard_group.this]
}

output "placements" {
  description = "Host of the driver, by member name."
  value       = trainyard_group.this.placements
}

output "path" {
  description = "Folder of the program on each host. Null if the image contains it."
  value       = one(trainyard_files.this[*].path)
}

output "workers" {
  description = "Number of executors that the application waits for."
  value       = local.workers
}
