# Brokers are added and removed according to their CPU usage. A rebalancer moves partitions to new brokers, and away
# from those to be removed, however long that takes.
resource "trainyard_group" "rebalancer" {
  cluster = trainyard_cluster.lab
  name    = "rebalancer"
  image   = "registry.example.com/rebalancer:1.2"
  roles   = { server = { replicas = 1, port = 9090 } }
}

resource "trainyard_group" "kafka" {
  cluster    = trainyard_cluster.lab
  name       = "kafka"
  image      = "registry.example.com/kafka:4.1"
  roles      = { broker = { port = 9092, resources = { cpus = 0.5 }, on_scale = "none", grace_period = "1m" } }
  completion = { when = "never" }
}

locals {
  rebalancer = "http://${trainyard_group.rebalancer.members["rebalancer-server-0"]}"
}

resource "trainyard_autoscaling_policy" "kafka" {
  cluster = trainyard_cluster.lab
  group   = trainyard_group.kafka.name
  role    = "broker"
  min     = 3
  max     = 6

  metrics = {
    cpu = {
      source    = { agent = { measure = "cpu_percent" } }
      algorithm = { target = { value = 60 } }
    }
  }

  scale_out = { max_step = 1, cooldown = "30m" }
  scale_in  = { max_step = 1, cooldown = "30m", stabilisation_window = "1h" }

  hooks = {
    before_removal = { url = "${local.rebalancer}/leaving", timeout = "6h" }
    after_addition = { url = "${local.rebalancer}/joined", timeout = "6h" }
  }
}
