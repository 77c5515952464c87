# On a Swarm, members are containers.
terraform {
  required_version = ">= 1.11" # for the write-only value of a secret
}

resource "trainyard_cluster" "gpus" {
  name   = "gpus"
  engine = "swarm"

  hosts = {
    gpu1 = { address = "ssh://ops@gpu1", role = "manager" }
    gpu2 = { address = "ssh://ops@gpu2" }
    gpu3 = { address = "ssh://ops@gpu3" }
  }
}

variable "token" {
  description = "Token with which the trainer accesses its data."
  type        = string
  sensitive   = true
  ephemeral   = true # kept out of plans and state
}

resource "trainyard_group" "ddp" {
  cluster   = trainyard_cluster.gpus
  name      = "ddp"
  framework = "pytorch"
  image     = "registry.example.com/trainer:1.2"
  command   = ["python3", "/srv/ddp/train.py", "--config", "/etc/train.yaml"]

  mounts = [
    { source = "/srv/data", target = "/data", read_only = true },
    { type = "volume", source = "checkpoints", target = "/checkpoints" },
    { type = "tmpfs", target = "/scratch", size_mib = 256 },
  ]

  container = {
    pull_policy  = "if_not_present"
    init         = true
    stop_signal  = "SIGINT"
    shm_size_mib = 1024
    ulimits      = { memlock = { soft = -1, hard = -1 } }

    health_check = {
      command      = ["/srv/ddp/alive"]
      interval     = "30s"
      timeout      = "5s"
      start_period = "2m"
      retries      = 3
    }

    logging = { driver = "json-file", options = { max-size = "20m", max-file = "3" } }
    ports   = { tensorboard = { target = 6006, published = 16006 } }
    configs = { train = { content = "epochs: 90\n", target = "/etc/train.yaml" } }
    secrets = { token = { value = var.token, version = "1" } }
  }

  roles = {
    worker = {
      replicas  = 3
      port      = 29500
      resources = { cpus = 1, memory_mib = 1024 }
      placement = { strategy = "one_per_host" } # two that publish the same port cannot share a host anyway
    }
  }

  restart_scope = "group"
}
