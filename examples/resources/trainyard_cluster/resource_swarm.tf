# Three hosts that form a Swarm.
resource "trainyard_cluster" "gpus" {
  name   = "gpus"
  engine = "swarm"

  hosts = {
    gpu1 = { address = "ssh://ops@gpu1", role = "manager", labels = { gpu = "v100" } }
    gpu2 = { address = "ssh://ops@gpu2", labels = { gpu = "v100" } }
    gpu3 = { address = "ssh://ops@gpu3", availability = "drain" }
  }

  network = { subnet = "10.20.0.0/20", encrypted = true }
}

# An existing Swarm, with all its nodes as they are: the one that the docker command would use.
resource "trainyard_cluster" "shared" {
  name   = "shared"
  engine = "swarm"
}
