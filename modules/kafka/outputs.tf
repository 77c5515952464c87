output "bootstrap_servers" {
  description = "Addresses (`host:port`) of brokers for clients, separated by commas, as members reach them: all brokers, or with `autoscale` those that always exist (`min` of them on `swarm`, elsewhere the first one)."
  value       = join(",", local.bootstrap)
  depends_on  = [trainyard_group.this]
}

output "controllers" {
  description = "Addresses of the controllers, separated by commas, as members reach them."
  value       = join(",", local.controllers)
  depends_on  = [trainyard_group.controllers]
}

output "rebalancer" {
  description = "URL of the rebalancer, as members reach it. `/status` reports brokers, replicas and moves, in JSON. Null if there is none."
  value       = local.rebalancer
  depends_on  = [trainyard_group.rebalancer]
}

output "cluster_id" {
  description = "Kafka's cluster ID."
  value       = local.cluster_id
}

output "names" {
  description = "Names of the groups: `brokers`, `controllers`, and `rebalancer`, which is null if there is none."
  value = {
    brokers     = trainyard_group.this.name
    controllers = trainyard_group.controllers.name
    rebalancer  = one(trainyard_group.rebalancer[*].name)
  }
}

output "members" {
  description = "Address (`host:port`) of each controller and broker, by member name. It changes with the number of brokers."
  value       = merge(trainyard_group.controllers.members, trainyard_group.this.members)
}

output "placements" {
  description = "Host of each controller and broker, by member name. It changes with the number of brokers."
  value       = merge(trainyard_group.controllers.placements, trainyard_group.this.placements)
}

output "policy" {
  description = "`<cluster>/<group>/<role>` of the autoscaling policy. Null if there is none."
  value       = one(trainyard_autoscaling_policy.this[*].id)
}
