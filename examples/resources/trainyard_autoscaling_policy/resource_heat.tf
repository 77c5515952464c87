# The autoscaler of P. Stolin's Spark cluster (2021), with its numbers: workers are added or removed once the CPUs, or
# the two GPUs that Spark may use, have reached a threshold three times in a row, and at most once every three minutes.
resource "trainyard_group" "dgx" {
  cluster   = trainyard_cluster.lab
  name      = "dgx"
  framework = "spark"
  image     = "spark:3.5.6"

  roles = {
    master = { port = 7077, replicas = 1, command = ["/opt/spark/bin/spark-class", "org.apache.spark.deploy.master.Master"] }
    worker = { command = ["/bin/sh", "-c", "exec /opt/spark/bin/spark-class org.apache.spark.deploy.worker.Worker \"$SPARK_MASTER_URI\""] }
  }
}

locals {
  prometheus = "http://monitoring-prometheus-0:9090"
  heat       = { lower = 0.2, upper = 0.6, target = 0.5, recurrence = 3 }
}

resource "trainyard_autoscaling_policy" "dgx" {
  cluster  = trainyard_cluster.lab
  group    = trainyard_group.dgx.name
  role     = "worker"
  min      = 1
  max      = 30
  interval = "5s"

  metrics = {
    cpu = {
      source    = { prometheus = { url = local.prometheus, query = "avg(rate(container_cpu_usage_seconds_total{image=~\"spark.*\"}[30s]))" } }
      algorithm = { heat = local.heat }
    }
    gpu = {
      source    = { prometheus = { url = local.prometheus, query = "avg(DCGM_FI_DEV_GPU_UTIL{gpu=~\"4|5\"}) / 100" } }
      algorithm = { heat = local.heat }
    }
  }

  scale_out = { cooldown = "3m", rates = [{ count = 30, period = "5s" }] } # the original has no rate limit
  scale_in  = { cooldown = "3m", stabilisation_window = "0s" }

  guards = {
    busy = { prometheus = { url = local.prometheus, query = "metrics_master_apps_Value" } }
  }
}
