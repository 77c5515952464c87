# Hosts that join a Swarm by themselves when they first boot. The token is handed on, and enters no state: here into a seed of
# cloud-init's NoCloud data source, which machines find on a disk or a web server of the rack.
#
# In a cloud, what boots reads the token from its store of secrets, into which Terraform writes it by a write-only argument, such
# as value_wo of aws_ssm_parameter. User data of a machine is no place for it: that is stored in the state.

terraform {
  required_version = ">= 1.11"

  required_providers {
    trainyard = {
      source = "trainyard/trainyard"
    }
  }
}

variable "seed" {
  description = "Folder that the seed is written to."
  type        = string
  default     = "seed"
}

# Without hosts, the cluster has all nodes of the Swarm: those that have joined are taken in by the next apply.
resource "trainyard_cluster" "fleet" {
  name   = "fleet"
  engine = "swarm"
}

ephemeral "trainyard_join_token" "worker" {
  cluster = trainyard_cluster.fleet
  role    = "worker"
}

locals {
  user_data = templatefile("${path.module}/user-data.tftpl", {
    token   = ephemeral.trainyard_join_token.worker.token
    manager = ephemeral.trainyard_join_token.worker.addresses[0]
  })
}

resource "terraform_data" "seed" {
  # Another value writes the seed anew, as after `docker swarm join-token --rotate worker`.
  triggers_replace = ["1"]

  provisioner "local-exec" {
    command = "umask 077 && mkdir -p \"$SEED\" && printf '%s' \"$USER_DATA\" >\"$SEED/user-data\" && : >\"$SEED/meta-data\""

    environment = {
      SEED      = var.seed
      USER_DATA = local.user_data
    }
  }
}
