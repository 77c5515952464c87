# Asynchronous training gets as many workers as make it faster: each has to bring a tenth at least of what one brought so far.
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

  # What it decides is recorded, and nothing done, until this is taken out.
  dry_run = true
}
