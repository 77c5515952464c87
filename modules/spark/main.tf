locals {
  cluster = { name = var.cluster.name, engine = var.cluster.engine, endpoint = var.cluster.endpoint }
  swarm   = var.cluster.engine == "swarm"

  # Location of Spark's programs: on PATH, or in a folder of the host or the image.
  bin = var.bin == null ? "" : "${trimsuffix(var.bin, "/")}/"

  gpus      = try(var.worker.gpus, null)
  gpu_count = local.gpus == null ? 0 : coalesce(local.gpus.count, 1)

  # Spark asks a script which GPUs a worker has. Bare hosts and processes get it in a folder, containers on a Swarm as a
  # config.
  brought  = local.gpus != null && !local.swarm
  folder   = local.swarm ? "/srv/spark" : one(trainyard_files.gpus[*].path)
  discover = local.gpus == null ? null : "${local.folder}/discover.sh"
  configs = local.gpus == null || !local.swarm ? {} : {
    discover = { target = local.discover, content = file("${path.module}/gpus/discover.sh"), mode = "0555" }
  }

  images = compact([var.image, var.worker.image])
  mounts = coalesce(var.mounts, [])
  worker_mounts = flatten([
    local.mounts, coalesce(var.worker.mounts, []),
    local.brought && var.cluster.engine == "systemd" && length(local.images) > 0 ? [{
      type = "bind", source = local.folder, target = local.folder, read_only = true, size_mib = null, driver = null
    }] : [],
  ])

  # Folders that members read again, or others, by input: with the image of these members, and mounts that may hold it.
  folders = {
    "master.recovery_dir" = {
      path   = var.master.recovery_dir
      image  = var.image
      mounts = { mounts = local.mounts, "master.mounts" = coalesce(var.master.mounts, []) }
    }
    "history.dir" = {
      path   = try(var.history.dir, null)
      image  = var.image
      mounts = { mounts = local.mounts }
    }
    "shuffle_dir" = {
      path   = var.shuffle_dir
      image  = try(coalesce(var.worker.image, var.image), null)
      mounts = { mounts = local.mounts, "worker.mounts" = coalesce(var.worker.mounts, []) }
    }
  }

  # Those that containers neither keep nor share. A folder is in the mount with the longest target that it begins with:
  # the last one, as keys are sorted. The history server only reads its folder: drivers may write it through a mount of
  # their own. On a Swarm, an image that is unknown at plan does not matter, which only a conditional expresses.
  lost = {
    for name, folder in local.folders : name => folder
    if(folder.path == null ? false : local.swarm ? true : var.cluster.engine == "systemd" ? folder.image != null : false)
    && !try(alltrue(reverse([
      for target, keeps in {
        for mount in concat(values(folder.mounts)...) :
        "${trimsuffix(mount.target, "/")}/" => mount.type != "tmpfs" && (name == "history.dir" || !coalesce(mount.read_only, false))...
      } : keeps if startswith("${folder.path}/", target)
    ])[0]), false)
  }

  # By default, web UIs listen at all addresses of their host. Containers on a Swarm have networks of their own.
  env = merge(
    { PYSPARK_PYTHON = var.python },
    local.swarm ? {} : { SPARK_LOCAL_IP = "{{ hostname .Address }}" },
    var.env,
  )

  # Metrics for Prometheus, at the web UIs of master and workers.
  metrics = {
    "spark.metrics.conf.*.sink.prometheusServlet.class" = "org.apache.spark.metrics.sink.PrometheusServlet"
    "spark.metrics.conf.*.sink.prometheusServlet.path"  = "/metrics/prometheus"
  }

  # Policy and guard read the web UI at its port: it is taken, or the master fails.
  master_conf = merge(
    local.metrics,
    { "spark.port.maxRetries" = "0" },
    var.master.recovery_dir == null ? {} : {
      "spark.deploy.recoveryMode"      = "FILESYSTEM"
      "spark.deploy.recoveryDirectory" = var.master.recovery_dir
    },
    var.master.conf,
  )
  worker_conf = merge(
    local.metrics,
    {
      "spark.worker.cleanup.enabled" = "true" # removes folders of applications that have ended
      "spark.port.maxRetries"        = "256"  # the next free port for the web UI of each worker on a host
    },
    local.gpus == null ? {} : {
      "spark.worker.resource.gpu.amount"          = tostring(local.gpu_count)
      "spark.worker.resource.gpu.discoveryScript" = local.discover
    },
    var.shuffle_dir == null ? {} : {
      "spark.decommission.enabled" = "true"
    },
    var.worker.conf,
  )

  # Properties that every application starts with. An application from elsewhere only has them if it is told.
  conf = merge(
    local.gpus == null ? {} : {
      "spark.executor.resource.gpu.amount" = tostring(local.gpu_count)
      "spark.task.resource.gpu.amount"     = tostring(local.gpus.per_task)
    },
    var.rapids == null ? {} : {
      "spark.plugins"                            = "com.nvidia.spark.SQLPlugin"
      "spark.jars"                               = var.rapids.jar
      "spark.rapids.memory.gpu.allocFraction"    = tostring(var.rapids.alloc_fraction)
      "spark.rapids.memory.gpu.debug"            = var.rapids.debug
      "spark.rapids.memory.gpu.pool"             = var.rapids.pool
      "spark.rapids.sql.incompatibleOps.enabled" = tostring(var.rapids.incompatible_ops)
    },
    var.history == null ? {} : {
      "spark.eventLog.enabled" = "true"
      "spark.eventLog.dir"     = "file://${var.history.dir}"
    },
    var.shuffle_dir == null ? {} : {
      "spark.decommission.enabled"                       = "true"
      "spark.storage.decommission.enabled"               = "true"
      "spark.storage.decommission.rddBlocks.enabled"     = "true"
      "spark.storage.decommission.shuffleBlocks.enabled" = "true"
      "spark.storage.decommission.fallbackStorage.path"  = "file://${trimsuffix(var.shuffle_dir, "/")}/"

      # An application removes its own folder there when it ends.
      "spark.storage.decommission.fallbackStorage.cleanUp" = "true"

      # Workers that hold shuffled data take none of one that leaves: they may be the next to leave.
      "spark.storage.decommission.shuffleBlocks.maxDiskSize" = "0"

      # How often an executor checks whether all of its data has been moved; it ends no sooner.
      "spark.storage.decommission.replicationReattemptInterval" = "1s"
    },
    var.conf,
  )

  # The values are write-only: Terraform stores only the versions.
  secrets = length(var.secrets) == 0 ? null : {
    for name, secret in var.secrets : name => {
      value   = var.secret_values[name]
      version = secret.version
      target  = secret.target
      mode    = secret.mode
    }
  }

  # On a Swarm, a member's name is its address; elsewhere, it is the host's, and if that is IPv6, it is in brackets.
  master = "${var.name}-master-0"
  host   = local.swarm ? local.master : try(regex("^(.*):[0-9]+$", trainyard_group.this.members[local.master])[0], null)
  web    = local.host == null ? null : "http://${local.host}:${var.master.web_port}"

  # What the heat rule follows, by the metric's name.
  heat = try(var.autoscale.heat, null) == null ? {} : merge({ cpu = "cpu_percent" }, local.gpus == null ? {} : { gpu = "gpu_percent" })

  # Selects the applications without a number of their own in autoscale.applications.
  others = join("", [for name in keys(try(var.autoscale.applications, {})) : "#(name!=\"${name}\")#|"])

  port = "--port \"$TRAINYARD_PORT\" --host \"$${TRAINYARD_ADDRESS%:*}\""
}

# Script for Spark's resource discovery.
resource "trainyard_files" "gpus" {
  count = local.brought ? 1 : 0

  cluster = local.cluster
  name    = "${var.name}-gpus"
  source  = "${path.module}/gpus"

  # Workers refer to the path: after a change of name, the new files are created before the old ones are removed.
  lifecycle {
    create_before_destroy = true
  }
}

resource "trainyard_group" "this" {
  cluster   = local.cluster
  name      = var.name
  framework = "spark"
  image     = var.image
  env       = local.env

  roles = {
    master = {
      replicas = 1
      port     = var.master.port
      command  = ["/bin/sh", "-euc", "exec ${local.bin}spark-class org.apache.spark.deploy.master.Master ${local.port} --webui-port ${var.master.web_port}"]
      env = merge(
        { SPARK_MASTER_OPTS = join(" ", [for name, value in local.master_conf : "-D${name}=${value}"]) },
        { SPARK_DAEMON_MEMORY = "${var.master.daemon_memory_mib}m" },
        var.master.env,
      )
      mounts       = length(concat(local.mounts, coalesce(var.master.mounts, []))) == 0 ? null : concat(local.mounts, coalesce(var.master.mounts, []))
      resources    = var.master.resources
      placement    = var.master.placement
      grace_period = "10s"
      restart      = { condition = "always" }

      container = var.master.published_port == null && length(var.secrets) == 0 ? null : {
        ports   = var.master.published_port == null ? null : { web = { target = var.master.web_port, published = var.master.published_port } }
        secrets = local.secrets
      }
    }

    worker = {
      replicas = var.autoscale == null ? coalesce(var.worker.replicas, 2) : null
      port     = var.worker.port
      image    = var.worker.image
      command = ["/bin/sh", "-euc", templatefile("${path.module}/worker.sh.tftpl", {
        bin      = local.bin, cores = var.worker.cores, memory = var.worker.memory_mib, port = local.port
        web_port = var.worker.web_port, drain = var.shuffle_dir != null
      })]
      env = merge(
        { SPARK_WORKER_OPTS = join(" ", [for name, value in local.worker_conf : "-D${name}=${value}"]) },
        { SPARK_DAEMON_MEMORY = "${var.worker.daemon_memory_mib}m" },
        var.worker.scratch_dir == null ? {} : { SPARK_LOCAL_DIRS = var.worker.scratch_dir },
        var.worker.env,
      )
      mounts       = length(local.worker_mounts) == 0 ? null : local.worker_mounts
      resources    = var.worker.resources
      gpus         = local.gpus == null ? null : { pool = local.gpus.pool, count = local.gpus.count, memory_mib = local.gpus.memory_mib }
      placement    = var.worker.placement
      grace_period = var.worker.grace_period
      restart      = { condition = "always" }

      container = length(local.configs) + length(var.secrets) == 0 ? null : {
        configs = length(local.configs) == 0 ? null : local.configs
        secrets = local.secrets
      }
    }
  }

  completion = { when = "never" }
  priority   = var.priority
  triggers   = var.triggers
  timeouts   = var.timeouts

  lifecycle {
    precondition {
      condition     = length(local.lost) == 0
      error_message = join("\n", [for name, folder in local.lost : "${name} is \"${folder.path}\", but members are containers, which neither keep nor share it: it must be in the target of a mount of type bind or volume${name == "history.dir" ? "" : " that is writable"}, in ${join(" or ", keys(folder.mounts))}."])
    }
  }
}

# Only an application itself knows how many workers it wants. So the policy looks the number up by the application's
# name, and treats all others alike. The largest count that a metric asks for is used.
resource "trainyard_autoscaling_policy" "this" {
  count = var.autoscale == null ? 0 : 1

  cluster  = local.cluster
  group    = trainyard_group.this.name
  role     = "worker"
  min      = var.autoscale.min
  max      = var.autoscale.max
  interval = var.autoscale.interval
  dry_run  = var.autoscale.dry_run

  metrics = merge(
    {
      applications = {
        source    = { queue = { http = { url = "${local.web}/json/", path = "activeapps.${local.others}#" } } }
        algorithm = { queue = { per_member = 1 / var.autoscale.workers_per_application, cool_down = var.autoscale.idle } }
      }
    },
    {
      for name, workers in var.autoscale.applications : "application-${name}" => {
        source    = { queue = { http = { url = "${local.web}/json/", path = "activeapps.#(name==\"${name}\")#|#" } } }
        algorithm = { queue = { per_member = 1 / workers, cool_down = var.autoscale.idle } }
      }
    },
    {
      for name, measure in local.heat : name => {
        source = { agent = { measure = measure } }
        algorithm = {
          heat = {
            lower      = var.autoscale.heat.lower
            upper      = var.autoscale.heat.upper
            target     = var.autoscale.heat.target
            recurrence = var.autoscale.heat.recurrence
          }
        }
      }
    },
  )

  scale_out = {
    cooldown = try(var.autoscale.heat.cooldown, null)
    rates    = [{ count = var.autoscale.max, period = "1s" }] # a gang needs all of its workers at once
  }
  scale_in = {
    cooldown             = try(var.autoscale.heat.cooldown, null)
    stabilisation_window = var.autoscale.idle
  }

  # Only recommended: a worker offers fixed cores and memory, which another request wouldn't change.
  vertical = var.autoscale.vertical == null ? null : {
    cpus       = var.autoscale.vertical.cpus
    memory_mib = var.autoscale.vertical.memory_mib
  }

  # Workers hold running applications' data, unless it is kept on shared storage.
  guards = var.shuffle_dir != null ? null : {
    busy = { http = { url = "${local.web}/json/", path = "activeapps.#" } }
  }
}

# A separate group, so that it stays up while the master and its workers change.
resource "trainyard_group" "history" {
  count = var.history == null ? 0 : 1

  cluster = local.cluster
  name    = "${var.name}-history"
  image   = var.image
  env     = local.env

  roles = {
    web = {
      port    = var.history.port
      command = ["/bin/sh", "-euc", "mkdir -p \"$HISTORY_DIR\" && exec ${local.bin}spark-class org.apache.spark.deploy.history.HistoryServer"]
      env = {
        HISTORY_DIR         = var.history.dir
        SPARK_DAEMON_MEMORY = "${var.history.daemon_memory_mib}m"
        SPARK_HISTORY_OPTS  = "-Dspark.history.fs.logDirectory=file://${var.history.dir} -Dspark.history.ui.port=${var.history.port} -Dspark.port.maxRetries=0"
      }
      mounts    = length(local.mounts) == 0 ? null : local.mounts
      resources = var.history.resources
      placement = var.history.placement
      restart   = { condition = "always" }

      container = var.history.published_port == null ? null : {
        ports = { web = { target = var.history.port, published = var.history.published_port } }
      }
    }
  }

  completion = { when = "never" }
}
