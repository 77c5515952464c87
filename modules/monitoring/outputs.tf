output "id" {
  description = "`<cluster>/<group>` of the group."
  value       = trainyard_group.this.id
}

output "endpoint" {
  description = "URL of Prometheus on the cluster's network. Null while it does not run."
  value       = try("http://${trainyard_group.this.members["${var.name}-prometheus-0"]}", null)
}

output "host" {
  description = "Name of the host on which Prometheus runs, where it is reached at `published_port`. Null while it does not run."
  value       = try(trainyard_group.this.placements["${var.name}-prometheus-0"], null)
}

output "grafana_endpoint" {
  description = "URL of Grafana on the cluster's network. Null where there is none, or while it does not run."
  value       = var.grafana == null ? null : try("http://${trainyard_group.this.members["${var.name}-grafana-0"]}", null)
}

output "grafana_host" {
  description = "Name of the host on which Grafana runs, where it is reached at `grafana.published_port`. Null where there is none, or while it does not run."
  value       = var.grafana == null ? null : try(trainyard_group.this.placements["${var.name}-grafana-0"], null)
}

output "agents" {
  description = "`name:port` of the cluster's agents on its network, for a Prometheus of your own: the name stands for all of them (`dns_sd_configs`, type A)."
  value       = "${local.agents}:${local.agents_port}"
}

output "controller" {
  description = "`name:port` of the cluster's controller on its network, which tells of members' names and of autoscaling policies, for a Prometheus of your own."
  value       = "${local.controller}:${local.controller_port}"
}
