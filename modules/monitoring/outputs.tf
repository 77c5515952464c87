output "id" {
  description = "`<cluster>/<group>` of the group."
  value       = trainyard_group.this.id
}

output "endpoint" {
  description = "URL of Prometheus on the cluster's network, or on that of bare hosts. Null while Prometheus is not running."
  value       = try("http://${trainyard_group.this.members["${var.name}-prometheus-0"]}", null)
}

output "host" {
  description = "Name of the host that Prometheus runs on, where `published_port` reaches it. Null while Prometheus is not running."
  value       = try(trainyard_group.this.placements["${var.name}-prometheus-0"], null)
}

output "grafana_endpoint" {
  description = "URL of Grafana on the cluster's network, or on that of bare hosts. Null without `grafana`, or while Grafana is not running."
  value       = var.grafana == null ? null : try("http://${trainyard_group.this.members["${var.name}-grafana-0"]}", null)
}

output "grafana_host" {
  description = "Name of the host that Grafana runs on, where `grafana.published_port` reaches it. Null without `grafana`, or while Grafana is not running."
  value       = var.grafana == null ? null : try(trainyard_group.this.placements["${var.name}-grafana-0"], null)
}

output "agents" {
  description = "`host:port` of the cluster's agents, separated by commas, for your own Prometheus. On a Swarm, it is one name on the cluster's network, which resolves to all of them (`dns_sd_configs`, type A)."
  value       = join(",", [for host in local.agents : "${host}:${local.agents_port}"])
}

output "controller" {
  description = "`host:port` of the cluster's controller, which reports members' names and autoscaling policies, also for your own Prometheus."
  value       = join(",", [for host in local.controller : "${host}:${local.controller_port}"])
}
