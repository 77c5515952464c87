# A Swarm of three hosts with a controller each, and three to six brokers, depending on the records that producers want
# to send: a broker carries 20,000 a second. A new broker is given partitions, and a broker is emptied before it is
# removed, both at 50 MiB/s.

terraform {
  required_version = ">= 1.11"

  required_providers {
    trainyard = {
      source  = "trainyard/trainyard"
      version = ">= 0.1.0"
    }
  }
}

resource "trainyard_cluster" "lab" {
  name   = "lab"
  engine = "swarm"

  hosts = {
    kafka1 = { address = "ssh://ops@kafka1", role = "manager" }
    kafka2 = { address = "ssh://ops@kafka2" }
    kafka3 = { address = "ssh://ops@kafka3" }
  }
}

# Kafka and the rebalancer, on all hosts without a registry.
resource "trainyard_image" "kafka" {
  cluster = trainyard_cluster.lab
  name    = "kafka:4.3.1"
  build   = { context = "${path.module}/../.." }
}

module "kafka" {
  source = "../.."

  cluster = trainyard_cluster.lab
  image   = trainyard_image.kafka.image_id

  controller = { replicas = 3, placement = { strategy = "one_per_host" } }

  broker = {
    heap_mib  = 2048
    data_dir  = "/mnt/nvme/kafka"
    resources = { cpus = 2, memory_mib = 6144 }
    conf      = { "broker.rack" = "{{ .Host }}" } # replicas on different hosts
  }

  conf       = { "log.retention.hours" = "24" }
  rebalancer = { throttle_mib = 50 }

  autoscale = {
    min       = 3
    max       = 6
    load      = { url = "http://load-load-0:9393/status" }
    algorithm = { target = { value = 20000 } }
  }
}

# A day's demand, simulated by producers and consumers.
resource "trainyard_group" "load" {
  cluster = trainyard_cluster.lab
  name    = "load"
  image   = trainyard_image.kafka.image_id

  roles = {
    load = {
      replicas = 1
      port     = 9393
      command = [
        "load", "-bootstrap", module.kafka.bootstrap_servers, "-listen", "{{ .Address }}",
        "-topic", "demand", "-partitions", "12", "-replication-factor", "3", "-shape", "day", "-period", "24h", "-base", "10000", "-peak", "90000",
      ]
    }
  }

  completion = { when = "never" }
}

output "bootstrap_servers" {
  description = "Bootstrap servers for producers and consumers."
  value       = module.kafka.bootstrap_servers
}

output "policy" {
  description = "The policy, whose decisions `terraform-provider-trainyard autoscale explain` shows."
  value       = module.kafka.policy
}
