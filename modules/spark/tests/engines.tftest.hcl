# How members get Spark, and workers their GPUs, by engine.

mock_provider "trainyard" {
  mock_resource "trainyard_files" {
    defaults = { path = "/srv/files" }
  }
}

variables {
  secret_values = {} # an apply of a root module requires all of its ephemeral variables
}

run "swarm" {
  variables {
    cluster = { name = "lab", engine = "swarm" }
    image   = "spark:4"
    bin     = "/opt/spark/bin"
    mounts  = [{ type = "volume", source = "spark", target = "/srv/spark-data", driver = { name = "local", options = { type = "nfs" } } }]
    master  = { published_port = 18080, placement = { hosts = ["cpu1"] }, mounts = [{ type = "tmpfs", target = "/scratch" }] }
    worker  = { gpus = { pool = "v100", count = 2, per_task = 0.5 }, cores = 8, memory_mib = 8192 }
    history = { dir = "/srv/spark-data/events", published_port = 18081 }
    rapids  = { jar = "/opt/rapids-4-spark.jar" }
  }

  assert {
    condition     = length(trainyard_files.gpus) == 0 && trainyard_group.this.roles.worker.container.configs.discover.target == "/srv/spark/discover.sh" && trainyard_group.this.roles.worker.container.configs.discover.mode == "0555"
    error_message = "The script must be an executable config."
  }

  assert {
    condition = (
      strcontains(trainyard_group.this.roles.worker.env.SPARK_WORKER_OPTS, "-Dspark.worker.resource.gpu.amount=2 -Dspark.worker.resource.gpu.discoveryScript=/srv/spark/discover.sh")
      && trainyard_group.this.roles.worker.gpus.pool == "v100" && trainyard_group.this.roles.worker.gpus.count == 2 && output.capacity.gpus == 2
    )
    error_message = "Workers must find their GPUs."
  }

  assert {
    condition = output.conf == tomap({
      "spark.executor.resource.gpu.amount"       = "2"
      "spark.task.resource.gpu.amount"           = "0.5"
      "spark.plugins"                            = "com.nvidia.spark.SQLPlugin"
      "spark.jars"                               = "/opt/rapids-4-spark.jar"
      "spark.rapids.memory.gpu.allocFraction"    = "1"
      "spark.rapids.memory.gpu.debug"            = "NONE"
      "spark.rapids.memory.gpu.pool"             = "ARENA"
      "spark.rapids.sql.incompatibleOps.enabled" = "false"
      "spark.eventLog.enabled"                   = "true"
      "spark.eventLog.dir"                       = "file:///srv/spark-data/events"
    })
    error_message = "Applications must get GPUs, and RAPIDS with the settings in the paper."
  }

  assert {
    condition     = !contains(keys(trainyard_group.this.env), "SPARK_LOCAL_IP") && !contains(keys(trainyard_group.history[0].env), "SPARK_LOCAL_IP")
    error_message = "In a container, web UIs must listen in all of its networks, for published ports."
  }

  assert {
    condition     = output.master == "spark://spark-master-0:7077" && output.web == "http://spark-master-0:8080" && strcontains(trainyard_group.this.roles.worker.command[2], "/opt/spark/bin/spark-class")
    error_message = "On a Swarm, members must be reached by name, and Spark must be where the image has it."
  }

  assert {
    condition = (
      trainyard_group.this.roles.worker.mounts[0].driver.options.type == "nfs" && trainyard_group.this.roles.master.mounts[*].target == tolist(["/srv/spark-data", "/scratch"]) && trainyard_group.this.roles.worker.mounts[*].target == tolist(["/srv/spark-data"])
      && trainyard_group.history[0].roles.web.mounts[0].source == "spark" && trainyard_group.history[0].image == "spark:4"
      && trainyard_group.history[0].roles.web.container.ports.web.published == 18081
      && trainyard_group.this.roles.master.container.ports.web.published == 18080
      && trainyard_group.this.roles.master.placement.hosts == tolist(["cpu1"])
    )
    error_message = "All must see the storage, and web UIs must be published at the configured ports."
  }
}

run "processes_with_gpus" {
  variables {
    cluster = { name = "lab" }
    worker  = { gpus = { pool = "v100" } }
  }

  assert {
    condition     = length(trainyard_files.gpus) == 1 && strcontains(trainyard_group.this.roles.worker.env.SPARK_WORKER_OPTS, "gpu.amount=1 -Dspark.worker.resource.gpu.discoveryScript=/srv/files/discover.sh") && trainyard_group.this.roles.worker.mounts == null
    error_message = "Processes must find the script among their host's files."
  }
}

run "stop" {
  variables {
    cluster     = { name = "lab" }
    shuffle_dir = "/mnt/nas/shuffle"
  }

  assert {
    condition     = strcontains(trainyard_group.this.roles.worker.command[2], "trap '' TERM INT") && strcontains(trainyard_group.this.roles.worker.command[2], "kill -PWR $worker")
    error_message = "Spark must be told in one way only that a worker leaves, on processes too, all of which get the stop signal."
  }
}

run "stop_without_shuffle_storage" {
  variables {
    cluster = { name = "lab" }
  }

  assert {
    condition     = !strcontains(trainyard_group.this.roles.worker.command[2], "trap '' TERM INT\n  exec") && strcontains(trainyard_group.this.roles.worker.command[2], "kill -TERM $worker")
    error_message = "A worker that has no data to move must end at once."
  }
}
