output "id" {
  description = "`<cluster>/<group>` of the group of master and workers."
  value       = trainyard_group.this.id
}

output "name" {
  description = "Name of the group of master and workers."
  value       = trainyard_group.this.name
}

output "cluster" {
  description = "Cluster that Spark runs on, for `submit`."
  value       = local.cluster
}

output "master" {
  description = "URL of the master, `spark://host:port`, as members reach it."
  value       = local.host == null ? null : "spark://${local.host}:${var.master.port}"
  depends_on  = [trainyard_group.this]
}

output "web" {
  description = "URL of the master's web UI, as members reach it. `/json/` serves the same as JSON, and `/metrics/prometheus` serves metrics to Prometheus."
  value       = local.web
  depends_on  = [trainyard_group.this]
}

output "history" {
  description = "URL of the history server, as members reach it. Null if there is none, or while it is not running."
  value       = try("http://${trainyard_group.history[0].members["${var.name}-history-web-0"]}", null)
}

output "members" {
  description = "Address (`host:port`) of each member, by member name."
  value       = trainyard_group.this.members
}

output "placements" {
  description = "Host and GPUs of each member, by member name."
  value       = trainyard_group.this.placements
}

output "policy" {
  description = "`<cluster>/<group>/<role>` of the autoscaling policy. Null if there is none."
  value       = one(trainyard_autoscaling_policy.this[*].id)
}

output "conf" {
  description = "Properties that applications start with: GPUs, RAPIDS, history, shuffle storage, and `conf`."
  value       = local.conf
}

output "executor" {
  description = "Defaults of an application: the number of `workers`, and the `cores` and `memory_mib` of each. `applications` has the numbers of workers that `autoscale` sets by application name."
  value = {
    workers      = var.autoscale == null ? coalesce(var.worker.replicas, 2) : var.autoscale.workers_per_application
    applications = var.autoscale == null ? {} : var.autoscale.applications
    cores        = var.worker.cores
    memory_mib   = var.worker.memory_mib
  }
}

output "capacity" {
  description = "Maximum capacity: the number of `workers` (fixed, or `autoscale.max`), and the `cores`, `memory_mib` and `gpus` of each. `submit` rejects applications that never fit, and warns if `dry_run` is set, as nobody adds workers then."
  value = {
    workers    = var.autoscale == null ? coalesce(var.worker.replicas, 2) : var.autoscale.max
    cores      = var.worker.cores
    memory_mib = var.worker.memory_mib
    gpus       = local.gpu_count
    dry_run    = try(var.autoscale.dry_run, false)
  }
}

output "runtime" {
  description = "What Spark and `submit` run with: `image`, `bin`, `python`, `env` and `mounts`."
  value       = { image = var.image, bin = var.bin, python = var.python, env = var.env, mounts = var.mounts }
}
