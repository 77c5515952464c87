# The number of workers follows their CPU usage, and none is removed while an application runs. The guard asks Spark's
# master, so no Prometheus is needed.
resource "trainyard_group" "etl" {
  cluster   = trainyard_cluster.lab
  name      = "etl"
  framework = "spark"
  image     = "spark:3.5.6"

  roles = {
    master = { port = 7078, replicas = 1, command = ["/opt/spark/bin/spark-class", "org.apache.spark.deploy.master.Master"] }
    worker = { resources = { cpus = 0.5 }, command = ["/bin/sh", "-c", "exec /opt/spark/bin/spark-class org.apache.spark.deploy.worker.Worker \"$SPARK_MASTER_URI\""] }
  }
}

resource "trainyard_autoscaling_policy" "etl" {
  cluster = trainyard_cluster.lab
  group   = trainyard_group.etl.name
  role    = "worker"
  min     = 1
  max     = 8

  metrics = {
    cpu = {
      source      = { agent = { measure = "cpu_percent" } }
      window      = "15s"
      ready_after = "30s" # a starting JVM keeps CPUs busy
      algorithm   = { target = { value = 60 } }
    }
    memory = { # only observed: recorded in the history, without proposing a count
      source = { agent = { measure = "memory_mib", of = "total" } }
    }
  }

  guards = {
    busy = { http = { url = "http://etl-master-0:8080/json/", path = "activeapps.#" } }
  }
}
