# The defaults: a master, two workers, and nothing else.

mock_provider "trainyard" {
  mock_resource "trainyard_files" {
    defaults = { path = "/srv/files" }
  }

  mock_resource "trainyard_group" {
    defaults = { members = { spark-master-0 = "127.0.0.1:7077" } }
  }
}

variables {
  cluster       = { name = "lab" }
  secret_values = {} # an apply of a root module requires all of its ephemeral variables
}

run "defaults" {
  assert {
    condition     = trainyard_group.this.name == "spark" && trainyard_group.this.framework == "spark" && join(" ", keys(trainyard_group.this.roles)) == "master worker"
    error_message = "The group must consist of a Spark master and workers."
  }

  assert {
    condition = (
      trainyard_group.this.roles.master.replicas == 1 && trainyard_group.this.roles.master.port == 7077
      && trainyard_group.this.roles.worker.replicas == 2 && trainyard_group.this.roles.worker.port == null
    )
    error_message = "There must be a master at port 7077, and two workers."
  }

  assert {
    condition     = strcontains(trainyard_group.this.roles.master.command[2], "exec spark-class org.apache.spark.deploy.master.Master") && endswith(trainyard_group.this.roles.master.command[2], "--webui-port 8080")
    error_message = "The master must be Spark's, with its web UI at port 8080."
  }

  assert {
    condition     = strcontains(trainyard_group.this.roles.worker.command[2], "--cores 1 --memory 1024m") && !strcontains(trainyard_group.this.roles.worker.command[2], "sleep")
    error_message = "A worker must have one core and 1 GiB, and end at once when stopped."
  }

  assert {
    condition     = toset(regexall("rm -rf [^\n]*|own=[^\n]*", trainyard_group.this.roles.worker.command[2])) == toset(["own=\"$PWD/.spark-worker\"", "rm -rf \"$own\""])
    error_message = "A worker must remove nothing but the folder that is only its own."
  }

  assert {
    condition = (
      endswith(trainyard_group.this.roles.worker.env.SPARK_WORKER_OPTS, ".path=/metrics/prometheus -Dspark.port.maxRetries=256 -Dspark.worker.cleanup.enabled=true")
      && trainyard_group.this.roles.master.env.SPARK_MASTER_OPTS == join(" ", [
        "-Dspark.metrics.conf.*.sink.prometheusServlet.class=org.apache.spark.metrics.sink.PrometheusServlet",
        "-Dspark.metrics.conf.*.sink.prometheusServlet.path=/metrics/prometheus", "-Dspark.port.maxRetries=0",
      ])
      && trainyard_group.this.env.PYSPARK_PYTHON == "python3"
    )
    error_message = "Only metrics, the cleanup of folders, the master's port and web UIs of many workers on a host may be configured."
  }

  assert {
    condition     = trainyard_group.this.env.SPARK_LOCAL_IP == "{{ hostname .Address }}"
    error_message = "Web UIs must listen only at the members' own addresses."
  }

  assert {
    condition     = trainyard_group.this.roles.worker.restart.condition == "always" && trainyard_group.this.roles.master.restart.condition == "always" && trainyard_group.this.completion.when == "never"
    error_message = "Spark is a service."
  }

  assert {
    condition     = trainyard_group.this.roles.worker.gpus == null && trainyard_group.this.roles.worker.mounts == null && trainyard_group.this.roles.worker.container == null && length(trainyard_files.gpus) == 0
    error_message = "By default, nothing is mounted, and no GPUs are used."
  }

  assert {
    condition     = length(trainyard_autoscaling_policy.this) == 0 && length(trainyard_group.history) == 0 && output.policy == null && output.history == null
    error_message = "By default, there is neither a policy nor a history server."
  }

  assert {
    condition     = output.master == "spark://127.0.0.1:7077" && output.web == "http://127.0.0.1:8080" && length(output.conf) == 0
    error_message = "The outputs must say where the master is."
  }

  assert {
    condition     = output.executor == { workers = 2, applications = {}, cores = 1, memory_mib = 1024 }
    error_message = "An application must get both workers."
  }

  assert {
    condition     = output.capacity == { workers = 2, cores = 1, memory_mib = 1024, gpus = 0, dry_run = false }
    error_message = "The capacity must be that of both workers."
  }
}

run "policy" {
  variables {
    autoscale = { min = 0, max = 8, workers_per_application = 4, applications = { fares = 2, trips = 1 } }
  }

  assert {
    condition     = trainyard_group.this.roles.worker.replicas == null && trainyard_autoscaling_policy.this[0].role == "worker" && trainyard_autoscaling_policy.this[0].min == 0 && trainyard_autoscaling_policy.this[0].max == 8
    error_message = "The count must be left to the policy."
  }

  assert {
    condition = (
      trainyard_autoscaling_policy.this[0].metrics.applications.source.queue.http == { url = "http://127.0.0.1:8080/json/", path = "activeapps.#(name!=\"fares\")#|#(name!=\"trips\")#|#" }
      && trainyard_autoscaling_policy.this[0].metrics.applications.algorithm.queue.per_member == 0.25
      && trainyard_autoscaling_policy.this[0].metrics.application-fares.source.queue.http.path == "activeapps.#(name==\"fares\")#|#"
      && trainyard_autoscaling_policy.this[0].metrics.application-fares.algorithm.queue.per_member == 0.5
      && length(trainyard_autoscaling_policy.this[0].metrics) == 3
    )
    error_message = "The policy must count the applications that the master reports: those with a number of their own, and the others."
  }

  assert {
    condition     = trainyard_autoscaling_policy.this[0].guards.busy.http == { url = "http://127.0.0.1:8080/json/", path = "activeapps.#" }
    error_message = "No worker may be removed while an application runs."
  }

  assert {
    condition     = trainyard_autoscaling_policy.this[0].vertical == null && trainyard_autoscaling_policy.this[0].scale_in.stabilisation_window == "2m" && trainyard_autoscaling_policy.this[0].scale_out.rates[0].count == 8 && trainyard_autoscaling_policy.this[0].scale_out.cooldown == null
    error_message = "Workers are added at once, and removed after a while."
  }

  assert {
    condition     = output.executor.workers == 4 && output.executor.applications.fares == 2 && output.capacity.workers == 8 && !output.capacity.dry_run
    error_message = "An application gets as many workers as the policy provides for it."
  }
}

run "policy_for_all_applications" {
  command = plan

  variables {
    autoscale = { max = 8 }
  }

  assert {
    condition     = join(" ", keys(trainyard_autoscaling_policy.this[0].metrics)) == "applications" && trainyard_autoscaling_policy.this[0].metrics.applications.source.queue.http.path == "activeapps.#"
    error_message = "Without numbers by name, the policy must count all applications."
  }
}

run "dry_run" {
  variables {
    autoscale = { min = 1, max = 8, dry_run = true }
  }

  assert {
    condition     = trainyard_autoscaling_policy.this[0].dry_run && output.capacity.workers == 8 && output.capacity.dry_run
    error_message = "A policy that only reports must be known to submits."
  }
}

run "heat" {
  variables {
    worker    = { resources = { cpus = 1 } }
    autoscale = { max = 30, heat = {} }
  }

  assert {
    condition = (
      trainyard_autoscaling_policy.this[0].metrics.cpu.source.agent.measure == "cpu_percent"
      && trainyard_autoscaling_policy.this[0].metrics.cpu.algorithm.heat == { lower = 20, upper = 60, target = 50, recurrence = 3 }
      && trainyard_autoscaling_policy.this[0].scale_out.cooldown == "3m" && trainyard_autoscaling_policy.this[0].scale_in.cooldown == "3m"
      && trainyard_autoscaling_policy.this[0].interval == "5s"
    )
    error_message = "The heat rule must have the settings in the paper."
  }

  assert {
    condition     = join(" ", keys(trainyard_autoscaling_policy.this[0].metrics)) == "applications cpu"
    error_message = "Without GPUs, it must follow only CPUs."
  }
}

run "heat_of_gpus" {
  command = plan

  variables {
    worker    = { resources = { cpus = 1 }, gpus = { pool = "v100" } }
    autoscale = { max = 30, heat = {} }
  }

  assert {
    condition = (
      trainyard_autoscaling_policy.this[0].metrics.gpu.source.agent.measure == "gpu_percent"
      && trainyard_autoscaling_policy.this[0].metrics.gpu.algorithm == trainyard_autoscaling_policy.this[0].metrics.cpu.algorithm
      && length(trainyard_autoscaling_policy.this[0].metrics) == 3
    )
    error_message = "The heat rule must follow the GPUs of workers like their CPUs."
  }
}

run "vertical" {
  variables {
    autoscale = { max = 4, vertical = { cpus = { min = 1, max = 8 } } }
  }

  assert {
    condition = (
      trainyard_autoscaling_policy.this[0].vertical.cpus == { min = 1, max = 8 } && trainyard_autoscaling_policy.this[0].vertical.memory_mib == null
      && coalesce(trainyard_autoscaling_policy.this[0].vertical.apply, "recommend") == "recommend"
    )
    error_message = "The policy must only recommend."
  }
}

run "shuffle" {
  variables {
    autoscale   = { max = 4 }
    shuffle_dir = "/mnt/nas/shuffle"
  }

  assert {
    condition     = trainyard_autoscaling_policy.this[0].guards == null
    error_message = "With shared storage, workers may be removed while applications run."
  }

  assert {
    condition = (
      output.conf["spark.storage.decommission.fallbackStorage.path"] == "file:///mnt/nas/shuffle/" && output.conf["spark.storage.decommission.shuffleBlocks.maxDiskSize"] == "0" && output.conf["spark.storage.decommission.fallbackStorage.cleanUp"] == "true"
      && strcontains(trainyard_group.this.roles.worker.env.SPARK_WORKER_OPTS, "-Dspark.decommission.enabled=true")
      && strcontains(trainyard_group.this.roles.worker.command[2], "sleep 0.2")
    )
    error_message = "A worker that is being removed must move its data away first."
  }
}

run "history" {
  variables {
    history = { dir = "/srv/events" }
    master  = { recovery_dir = "/srv/recovery" }
    worker  = { scratch_dir = "/mnt/nvme", conf = { "spark.worker.cleanup.enabled" = "false", "spark.port.maxRetries" = "32" } }
    env     = { SPARK_LOCAL_IP = "0.0.0.0" }
  }

  assert {
    condition     = trainyard_group.this.env.SPARK_LOCAL_IP == "0.0.0.0" && trainyard_group.history[0].env.SPARK_LOCAL_IP == "0.0.0.0"
    error_message = "The user may have web UIs listen at all addresses."
  }

  assert {
    condition     = trainyard_group.history[0].name == "spark-history" && trainyard_group.history[0].roles.web.port == 18080 && strcontains(trainyard_group.history[0].roles.web.env.SPARK_HISTORY_OPTS, "logDirectory=file:///srv/events ") && endswith(trainyard_group.history[0].roles.web.env.SPARK_HISTORY_OPTS, "-Dspark.port.maxRetries=0")
    error_message = "The history server must read the folder."
  }

  assert {
    condition     = output.conf == tomap({ "spark.eventLog.enabled" = "true", "spark.eventLog.dir" = "file:///srv/events" })
    error_message = "Applications must write to it."
  }

  assert {
    condition     = startswith(trainyard_group.this.roles.master.env.SPARK_MASTER_OPTS, "-Dspark.deploy.recoveryDirectory=/srv/recovery -Dspark.deploy.recoveryMode=FILESYSTEM ")
    error_message = "The master must keep its state."
  }

  assert {
    condition     = trainyard_group.this.roles.worker.env.SPARK_LOCAL_DIRS == "/mnt/nvme" && endswith(trainyard_group.this.roles.worker.env.SPARK_WORKER_OPTS, " -Dspark.port.maxRetries=32 -Dspark.worker.cleanup.enabled=false")
    error_message = "The user's scratch_dir and conf must take precedence."
  }
}
