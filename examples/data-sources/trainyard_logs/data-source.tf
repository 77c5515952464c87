terraform {
  required_providers {
    trainyard = {
      source = "trainyard/trainyard"
    }
  }
}

resource "trainyard_cluster" "lab" {
  name = "lab"
}

resource "trainyard_group" "service" {
  cluster = trainyard_cluster.lab
  name    = "service"
  command = ["/bin/sleep", "infinity"]
  roles   = { worker = { replicas = 2 } }
}

data "trainyard_logs" "first" {
  cluster = trainyard_cluster.lab
  member  = "${trainyard_group.service.name}-worker-0"
  tail    = 20
  since   = "15m"

  # Read after the group has been applied.
  depends_on = [trainyard_group.service]
}

output "log" {
  description = "Last lines of the first worker's log, which may contain secrets."
  value       = join("\n", data.trainyard_logs.first.lines)
  sensitive   = true
}
