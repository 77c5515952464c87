# Brokers are added and removed by a model trained on a recorded load. Its inputs are the load, how long producers wait,
# and whether partitions are moving. At each decision it adds one broker, removes one, or keeps the number.
variable "model" {
  description = "Model file written by terraform-provider-trainyard autoscale train."
  type        = string
  default     = "dqn.json"
}

resource "trainyard_group" "events" {
  cluster    = trainyard_cluster.lab
  name       = "events"
  image      = "registry.example.com/kafka:4.1"
  roles      = { broker = { port = 9092, on_scale = "none", grace_period = "1m" } }
  completion = { when = "never" }
}

locals {
  kafka_prometheus = "http://prometheus:9090"
}

resource "trainyard_autoscaling_policy" "events" {
  cluster  = trainyard_cluster.lab
  group    = trainyard_group.events.name
  role     = "broker"
  min      = 3
  max      = 9
  interval = "15s"

  metrics = {
    rate = {
      source = { prometheus = { url = local.kafka_prometheus, query = "sum(rate(kafka_messages_in_total[1m]))" } }
      algorithm = {
        learned = {
          model         = file(var.model)
          per           = "total"
          capacity      = 50000 # records per second that one broker can take
          latency_bound = 0.05  # seconds
          observes      = { p99 = "latency", reassigning = "moves" }
        }
      }
    }
    latency = { source = { prometheus = { url = local.kafka_prometheus, query = "max(kafka_produce_seconds{quantile=\"0.99\"})" } } }
    moves   = { source = { prometheus = { url = local.kafka_prometheus, query = "sum(kafka_reassigning_partitions)" } } }
  }

  # The model has learnt when to wait.
  scale_in = { stabilisation_window = "0s" }

  # Never fewer brokers than a partition has replicas.
  guards = {
    at_least = { prometheus = { url = local.kafka_prometheus, query = "max(kafka_partition_replicas)" } }
  }
}
