locals {
  cluster = { name = var.spark.cluster.name, engine = var.spark.cluster.engine, endpoint = var.spark.cluster.endpoint }
  swarm   = local.cluster.engine == "swarm"
  runtime = var.spark.runtime
  bin     = local.runtime.bin == null ? "" : "${trimsuffix(local.runtime.bin, "/")}/"

  # The module's own program, unless there are files, or the program is there already. Containers on a Swarm get it as
  # configs.
  own     = var.files == null && !startswith(var.program, "/")
  brought = !local.swarm && (local.own || var.files != null)
  folder  = local.swarm ? "/srv/submit" : one(trainyard_files.this[*].path)
  program = startswith(var.program, "/") ? var.program : "${local.folder}/${var.program}"
  configs = {
    for file in [var.program, "data.py", "training.py"] : file => {
      target  = "${local.folder}/${file}"
      content = file("${path.module}/train/${file}")
    } if local.swarm && local.own
  }

  # On bare hosts with an image, the driver is a container, which needs the folder as well.
  declared_mounts = concat(coalesce(local.runtime.mounts, []), coalesce(var.driver.mounts, []))
  mounts = flatten([
    local.declared_mounts,
    local.brought && local.cluster.engine == "systemd" && local.runtime.image != null ? [{
      type = "bind", source = local.folder, target = local.folder, read_only = true, size_mib = null, driver = null
    }] : [],
  ])

  workers = coalesce(var.workers, terraform_data.cluster.input.workers)
  cores   = coalesce(var.executor.cores, terraform_data.cluster.input.cores)
  memory  = coalesce(var.executor.memory_mib, terraform_data.cluster.input.memory_mib)

  # Properties of the application, except its size.
  properties = merge(
    {
      "spark.driver.host"   = "{{ hostname .Address }}"
      "spark.driver.port"   = "{{ .Port }}"
      "spark.driver.memory" = "${var.driver.memory_mib}m"

      # The first task waits for all executors: a gang starts complete or not at all.
      "spark.scheduler.minRegisteredResourcesRatio"       = "1.0"
      "spark.scheduler.maxRegisteredResourcesWaitingTime" = local.gang_timeout

      "spark.port.maxRetries"        = "256"   # the next free port for the web UI of each driver on a host
      "spark.ui.showConsoleProgress" = "false" # only useful in a terminal
    },
    var.spark.conf,
    var.conf,
  )
  conf = merge(
    {
      "spark.executor.cores"  = tostring(local.cores)
      "spark.executor.memory" = "${local.memory}m"
      "spark.cores.max"       = tostring(local.workers * local.cores)
    },

    # XGBoost trains with as many threads as its task has CPUs, and the module's own programs have a task per executor.
    local.own ? { "spark.task.cpus" = lookup(merge(var.spark.conf, var.conf), "spark.executor.cores", tostring(local.cores)) } : {},
    local.properties,
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

  # Digest of everything whose change submits the application again, except the cluster's size. While the cluster
  # changes, the address of its master and the path of the files can be unknown at plan, even if they stay the same: the
  # name of the cluster and the digest of the files stand for them.
  submitted = sha256(jsonencode({
    name     = var.name
    triggers = var.triggers
    cluster  = { name = local.cluster.name, engine = local.cluster.engine }
    spark    = coalesce(var.spark.name, var.spark.master)
    runtime  = local.runtime
    program  = var.program
    files    = one(trainyard_files.this[*].digest)
    configs  = local.configs
    class    = var.class
    args     = var.args
    env      = var.env
    secrets  = var.secrets
    conf     = local.properties
    workers  = var.workers
    executor = var.executor
    driver   = { port = var.driver.port, resources = var.driver.resources, mounts = local.declared_mounts, retries = var.retries }
  }))

  # What is requested of the cluster as it is now, and how many executors fit into its workers. What conf says of
  # executors can be in any of Spark's units, and is not checked.
  requested = {
    workers    = coalesce(var.workers, local.offered)
    cores      = coalesce(var.executor.cores, var.spark.executor.cores)
    memory_mib = coalesce(var.executor.memory_mib, var.spark.executor.memory_mib)
  }
  offered  = lookup(var.spark.executor.applications, var.name, var.spark.executor.workers)
  parked   = try(var.spark.capacity.workers == 0, false)
  again    = "A change submits the application again, even if it has completed. If it needn't run again, remove this submit."
  capacity = length(setintersection(keys(merge(var.spark.conf, var.conf)), ["spark.cores.max", "spark.executor.cores", "spark.executor.memory"])) == 0 ? var.spark.capacity : null
  gpus     = try(tonumber(local.conf["spark.executor.resource.gpu.amount"]), 0)
  each = local.capacity == null ? null : floor(min(concat(
    [local.capacity.cores / local.requested.cores, local.capacity.memory_mib / local.requested.memory_mib],
    local.gpus > 0 ? [local.capacity.gpus / local.gpus] : [],
  )...))

  # Spark only accepts durations with a single unit.
  units        = { ms = 1, s = 1000, m = 60000, h = 3600000 }
  gang_timeout = "${floor(sum([for part in regexall("([0-9.]+)(ms|s|m|h)", var.gang_timeout) : tonumber(part[0]) * local.units[part[1]]]))}ms"
}

resource "trainyard_files" "this" {
  count = local.brought ? 1 : 0

  cluster = local.cluster
  name    = var.name
  source  = coalesce(var.files, "${path.module}/train")

  # The driver refers to the path: after a change of name, the new files are created before the old ones are removed.
  lifecycle {
    create_before_destroy = true
  }
}

# The cluster's size as of the last submit: a change of the size alone doesn't submit the application again.
resource "terraform_data" "cluster" {
  input            = { workers = local.offered, cores = var.spark.executor.cores, memory_mib = var.spark.executor.memory_mib }
  triggers_replace = local.submitted

  lifecycle {
    ignore_changes = [input]
  }
}

resource "trainyard_group" "this" {
  cluster = local.cluster
  name    = var.name
  image   = local.runtime.image

  command = concat(
    ["${local.bin}spark-submit", "--name", var.name, "--master", var.spark.master, "--deploy-mode", "client"],
    var.class == null ? [] : ["--class", var.class],
    flatten([for name, value in local.conf : ["--conf", "${name}=${value}"]]),
    [local.program],
  )
  args        = var.args
  working_dir = local.brought ? local.folder : null

  container = length(local.configs) + length(var.secrets) == 0 ? null : {
    configs = length(local.configs) == 0 ? null : local.configs
    secrets = local.secrets
  }

  env = merge(
    local.swarm ? {} : { SPARK_LOCAL_IP = "{{ hostname .Address }}" }, # where the web UI listens
    {
      PYSPARK_PYTHON          = local.runtime.python
      PYTHONUNBUFFERED        = "1" # lines reach the log as they are written
      PYTHONDONTWRITEBYTECODE = "1" # leaves the program's folder unchanged
    },
    local.runtime.env,
    { WORKERS = tostring(local.workers) },
    var.env,
  )

  roles = {
    driver = {
      replicas  = 1
      port      = var.driver.port
      mounts    = length(local.mounts) == 0 ? null : local.mounts
      resources = var.driver.resources
      placement = var.driver.placement
      restart   = var.retries == 0 ? { condition = "never" } : { condition = "on_failure", max_attempts = var.retries }
    }
  }

  completion = { when = "all", deadline = var.deadline }
  wait_for   = var.wait_for
  priority   = var.priority
  triggers   = var.triggers
  timeouts   = var.timeouts

  lifecycle {
    precondition {
      condition     = local.workers >= 1
      error_message = "workers is ${local.workers}, the Spark cluster's worker.replicas: an application needs at least 1. Set workers, and the application waits until the cluster has that many, or set worker.replicas."
    }

    precondition {
      condition     = local.capacity == null ? true : local.requested.cores <= local.capacity.cores
      error_message = "executor.cores is ${local.requested.cores}: it must be at most ${try(local.capacity.cores, 0)}, the Spark cluster's worker.cores. ${local.again}"
    }

    precondition {
      condition     = local.capacity == null ? true : local.requested.memory_mib <= local.capacity.memory_mib
      error_message = "executor.memory_mib is ${local.requested.memory_mib}: it must be at most ${try(local.capacity.memory_mib, 0)}, the Spark cluster's worker.memory_mib. ${local.again}"
    }

    precondition {
      condition     = local.capacity == null ? true : local.gpus <= local.capacity.gpus
      error_message = "conf[\"spark.executor.resource.gpu.amount\"] is ${local.gpus}: it must be at most ${try(local.capacity.gpus, 0)}, the GPUs of a worker of the Spark cluster."
    }

    precondition {
      condition     = local.capacity == null || local.parked ? true : local.each == 0 || local.requested.workers <= local.capacity.workers * local.each
      error_message = "workers is ${local.requested.workers}: it must be at most ${try(local.capacity.workers * local.each, 0)}, because the Spark cluster has ${try(local.capacity.workers, 0)} workers at most (worker.replicas, or autoscale.max), with room for ${coalesce(local.each, 0)} executors each. ${local.again}"
    }
  }
}

check "workers" {
  assert {
    condition     = !local.parked
    error_message = "The Spark cluster has no workers (worker.replicas is 0): unless application \"${var.name}\" has ended, it waits for ${local.workers}."
  }

  # The policy may have added any number of workers before it was set to dry_run.
  assert {
    condition     = !try(var.spark.capacity.dry_run, false)
    error_message = "The Spark cluster's policy adds no workers (autoscale.dry_run is true): if there is no room for ${local.workers} executors now, application \"${var.name}\" waits, unless it has ended."
  }
}
