terraform {
  required_providers {
    trainyard = {
      source = "trainyard/trainyard"
    }
  }
}

resource "trainyard_cluster" "lab" {
  name   = "lab"
  engine = "swarm"

  hosts = {
    gpu1 = { address = "ssh://ops@gpu1", role = "manager" }
    gpu2 = { address = "ssh://ops@gpu2" }
  }
}

# The policy sets the number of workers: omit replicas.
resource "trainyard_group" "spark" {
  cluster   = trainyard_cluster.lab
  name      = "spark"
  framework = "spark"
  image     = "spark:3.5.6"

  roles = {
    master = { port = 7077, replicas = 1, command = ["/opt/spark/bin/spark-class", "org.apache.spark.deploy.master.Master"] }

    worker = {
      command      = ["/bin/sh", "-c", "exec /opt/spark/bin/spark-class org.apache.spark.deploy.worker.Worker \"$SPARK_MASTER_URI\""]
      resources    = { cpus = 0.5, memory_mib = 1024 }
      grace_period = "30s"
    }
  }
}

# Enough workers to keep CPU usage at 60 %: at least two on weekdays from 8:00 to 18:00, and none is removed while an
# application runs.
resource "trainyard_autoscaling_policy" "spark" {
  cluster = trainyard_cluster.lab
  group   = trainyard_group.spark.name
  role    = "worker"
  min     = 1
  max     = 3

  metrics = {
    cpu = {
      source    = { agent = { measure = "cpu_percent" } }
      window    = "1m"
      algorithm = { target = { value = 60 } }
    }
  }

  schedules = {
    office = { start = "0 8 * * MON-FRI", end = "0 18 * * MON-FRI", time_zone = "Europe/Warsaw", count = 2 }
  }

  scale_in = { stabilisation_window = "10m", max_step = 1 }

  guards = {
    busy = { prometheus = { url = "http://monitoring-prometheus-0:9090", query = "metrics_master_apps_Value" } }
  }

  on_destroy = "min"
}
