terraform {
  required_version = ">= 1.8"

  required_providers {
    trainyard = {
      source  = "trainyard/trainyard"
      version = ">= 0.1.0"
    }
  }
}

variable "registry_password" {
  description = "Password of the user ci at registry.example.com."
  type        = string
  sensitive   = true
}

# The engine "process" needs no configuration: it keeps its state in the user's XDG state folder.
#
# The engine "swarm" needs credentials for its hosts here, unless the docker command and ssh find them.
provider "trainyard" {
  ssh = {
    user              = "ops"
    identity_files    = ["~/.ssh/lab"]
    known_hosts_files = ["~/.ssh/known_hosts"]
    jump_host         = "ops@bastion.example.com:2222"
  }

  docker = {
    # For hosts with addresses such as tcp://gpu1:2376: the folder contains ca.pem, cert.pem and key.pem.
    tls = { cert_path = "~/.docker/lab" }

    registries = {
      "registry.example.com" = { username = "ci", password = var.registry_password }
    }
  }
}

# The Swarm that the docker command would use.
resource "trainyard_cluster" "lab" {
  name   = "lab"
  engine = "swarm"
}
