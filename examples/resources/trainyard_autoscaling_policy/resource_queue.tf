# One worker per ten jobs waiting in Redis, and none once the queue has been empty for two minutes.
resource "trainyard_group" "redis" {
  cluster = trainyard_cluster.lab
  name    = "redis"
  image   = "redis:7.4"
  roles   = { server = { replicas = 1, port = 6379 } }
}

resource "trainyard_group" "jobs" {
  cluster    = trainyard_cluster.lab
  name       = "jobs"
  image      = "registry.example.com/jobs:1.4"
  roles      = { worker = { resources = { cpus = 0.1 } } }
  completion = { when = "never" }
}

resource "trainyard_autoscaling_policy" "jobs" {
  cluster = trainyard_cluster.lab
  group   = trainyard_group.jobs.name
  role    = "worker"
  min     = 0
  max     = 8

  metrics = {
    waiting = {
      source    = { queue = { redis = { address = trainyard_group.redis.members["redis-server-0"], key = "jobs" } } }
      algorithm = { queue = { per_member = 10, cool_down = "2m" } }
    }
  }
}
