terraform {
  required_version = ">= 1.10"

  required_providers {
    trainyard = {
      source = "trainyard/trainyard"
    }
  }
}

resource "trainyard_cluster" "lab" {
  name   = "lab"
  engine = "swarm"
}

ephemeral "trainyard_join_token" "worker" {
  cluster = trainyard_cluster.lab
  role    = "worker"
}

# The token can be used wherever nothing is stored: in a provisioner, as here, in a provider's configuration, or in a
# write-only argument of another resource.
resource "terraform_data" "gpu4" {
  provisioner "local-exec" {
    command = "printf '%s\\n' \"$TOKEN\" | ssh ops@gpu4 \"read -r token && docker swarm join --token \\$token $MANAGER\""
    environment = {
      TOKEN   = ephemeral.trainyard_join_token.worker.token
      MANAGER = ephemeral.trainyard_join_token.worker.addresses[0]
    }
  }
}
