# Asynchronous training gets more workers as long as they make it faster: each further worker has to add at least a
# tenth of the average contribution of the workers before it.
resource "trainyard_cluster" "here" {
  name = "here"
}

resource "trainyard_group" "mnist" {
  cluster   = trainyard_cluster.here
  name      = "mnist"
  framework = "tensorflow"
  command   = ["/bin/sh", "-c", "for i in $(seq 600); do echo \"step $i\"; sleep 1; done"]

  roles = {
    ps     = { replicas = 1, port = 8000 }
    worker = { port = 9000 }
  }
}

resource "trainyard_autoscaling_policy" "mnist" {
  cluster = trainyard_cluster.here
  group   = trainyard_group.mnist.name
  role    = "worker"
  min     = 1
  max     = 6

  metrics = {
    steps = {
      source    = { progress = { pattern = "^step (?P<step>\\d+)" } }
      algorithm = { marginal_gain = { threshold = 0.1, settle = "2m" } }
    }
  }

  # Until this is removed, decisions are only recorded.
  dry_run = true
}
