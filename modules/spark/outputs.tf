output "id" {
  description = "`<cluster>/<group>` of the group with master and workers."
  value       = trainyard_group.this.id
}

output "name" {
  description = "Name of that group."
  value       = trainyard_group.this.name
}

output "cluster" {
  description = "The cluster on which it runs, by which `submit` finds it."
  value       = local.cluster
}

output "master" {
  description = "URL of the master, `spark://host:port`, as members reach it."
  value       = local.host == null ? null : "spark://${local.host}:${var.master.port}"
  depends_on  = [trainyard_group.this]
}

output "web" {
  description = "URL of the master's page, as members reach it. `/json/` is the same for programs, and `/metrics/prometheus` is for Prometheus."
  value       = local.web
  depends_on  = [trainyard_group.this]
}

output "history" {
  description = "URL of the history server, as members reach it. Null where there is none, or while it does not run."
  value       = try("http://${trainyard_group.history[0].members["${var.name}-history-web-0"]}", null)
}

output "members" {
  description = "Address (`host:port`) of each member, by its name."
  value       = trainyard_group.this.members
}

output "placements" {
  description = "Host of each member, and its GPUs, by its name."
  value       = trainyard_group.this.placements
}

output "policy" {
  description = "`<cluster>/<group>/<role>` of the autoscaling policy. Null where there is none."
  value       = one(trainyard_autoscaling_policy.this[*].id)
}

output "conf" {
  description = "Properties that applications begin with: GPUs, RAPIDS, history, shuffle storage, and `conf`."
  value       = local.conf
}

output "executor" {
  description = "What an application has by default: `workers`, and of each its `cores` and `memory_mib`; by name in `applications`, where `autoscale` says so."
  value = {
    workers      = var.autoscale == null ? coalesce(var.worker.replicas, 2) : var.autoscale.workers_per_application
    applications = var.autoscale == null ? {} : var.autoscale.applications
    cores        = var.worker.cores
    memory_mib   = var.worker.memory_mib
  }
}

output "runtime" {
  description = "What runs Spark: `image`, `bin`, `python`, `env` and `mounts`, by which `submit` runs it likewise."
  value       = { image = var.image, bin = var.bin, python = var.python, env = var.env, mounts = var.mounts }
}
