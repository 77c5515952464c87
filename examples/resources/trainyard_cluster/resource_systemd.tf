# Bare hosts: they need only an SSH server, systemd, and root or sudo. One of them keeps the cluster's documents.
resource "trainyard_cluster" "bare" {
  name   = "bare"
  engine = "systemd"

  hosts = {
    gpu1 = { address = "ssh://ops@gpu1", role = "manager", labels = { rack = "a" } }
    gpu2 = { address = "ssh://ops@gpu2", labels = { rack = "b" } }
  }
}
