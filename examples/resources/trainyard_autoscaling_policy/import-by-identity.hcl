import {
  to = trainyard_autoscaling_policy.spark
  identity = {
    cluster = "lab"
    group   = "spark"
    role    = "worker"
  }
}
