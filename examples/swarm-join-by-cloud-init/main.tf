# Hosts that join a Swarm by themselves on first boot. The token is passed on without entering the state: here into a
# seed for cloud-init's NoCloud data source, which machines find on a disk or on a web server of the rack.
#
# In a cloud, a booting machine reads the token from a secret store, to which Terraform writes it with a write-only
# argument, such as value_wo of aws_ssm_parameter. Do not put it in a machine's user data: that is stored in the state.

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

# Without hosts, the cluster has all nodes of the Swarm: the next apply adds those that have joined.
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
  # A new value rewrites the seed, for example after `docker swarm join-token --rotate worker`.
  triggers_replace = ["1"]

  provisioner "local-exec" {
    command = "umask 077 && mkdir -p \"$SEED\" && printf '%s' \"$USER_DATA\" >\"$SEED/user-data\" && : >\"$SEED/meta-data\""

    environment = {
      SEED      = var.seed
      USER_DATA = local.user_data
    }
  }
}
