variable "cluster" {
  description = "Cluster that Spark runs on, passed as a whole: `trainyard_cluster.lab`."
  type = object({
    name     = string
    engine   = optional(string)
    endpoint = optional(string)
  })
  nullable = false

  validation {
    condition     = contains(["process", "swarm", "systemd"], coalesce(var.cluster.engine, "process"))
    error_message = "cluster.engine is \"${coalesce(var.cluster.engine, "process")}\": it must be \"process\", \"swarm\" or \"systemd\"."
  }
}

variable "name" {
  description = "Name of the group. Its members are `<name>-master-0`, `<name>-worker-0` and so on; the history server is `<name>-history-web-0`."
  type        = string
  default     = "spark"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z]([a-z0-9-]{0,47}[a-z0-9])?$", var.name))
    error_message = "name is \"${var.name}\": it must be a DNS label of at most 49 characters (lower-case letters, digits and hyphens, starting with a letter), so that members' names, such as <name>-history-web-0, fit into 63 characters."
  }
}

variable "image" {
  description = "Container image with Spark, and Python with everything that your programs import; required on `swarm`. On bare hosts, it makes members run as containers; on `process`, it has no effect. The module's `Dockerfile` builds one, and `Dockerfile.gpu` one for workers with GPUs."
  type        = string
  default     = null

  validation {
    condition     = var.image == null ? var.cluster.engine != "swarm" : trimspace(var.image) != ""
    error_message = "image is ${var.image == null ? "not set" : "empty"}: on a Swarm, members are containers, so set it, for example to \"registry.example.com/spark:4.3.0\". On other engines, omit it to run members without containers."
  }
}

variable "bin" {
  description = "Folder of `spark-class` and `spark-submit`, such as `/opt/spark/bin`, on the hosts or in the image. By default they are looked up in `PATH`, where `pip install pyspark` puts them."
  type        = string
  default     = null

  validation {
    condition     = var.bin == null ? true : can(regex("^/[A-Za-z0-9._/+-]*$", var.bin))
    error_message = "bin is \"${coalesce(var.bin, "-")}\": it must be an absolute path of letters, digits and ._/+-, such as \"/opt/spark/bin\"."
  }
}

variable "python" {
  description = "Python for drivers and executors, set as `PYSPARK_PYTHON`: a name on `PATH`, or an absolute path, such as the Python of a virtual environment with pyspark and xgboost."
  type        = string
  default     = "python3"
  nullable    = false

  validation {
    condition     = can(regex("^(/.*)?[^/\\s]+$", var.python))
    error_message = "python is \"${var.python}\": it must be the name of a program, such as \"python3\", or an absolute path, such as \"/opt/spark/venv/bin/python\"."
  }
}

variable "env" {
  description = "Additional environment variables of all members, and of what `submit` runs, by name, such as `JAVA_HOME`."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for name in keys(var.env) : can(regex("^[A-Za-z_][A-Za-z0-9_]*$", name)) && !startswith(name, "TRAINYARD_")])
    error_message = "env has ${join(", ", [for name in keys(var.env) : "\"${name}\"" if !can(regex("^[A-Za-z_][A-Za-z0-9_]*$", name)) || startswith(name, "TRAINYARD_")])}: names consist of letters, digits and underscores, and don't start with a digit; the prefix TRAINYARD_ is reserved."
  }

  validation {
    condition     = length(setintersection(keys(var.env), ["SPARK_MASTER_OPTS", "SPARK_WORKER_OPTS", "SPARK_HISTORY_OPTS", "SPARK_DAEMON_MEMORY", "PYSPARK_PYTHON"])) == 0
    error_message = "env has ${join(", ", [for name in keys(var.env) : "\"${name}\"" if contains(["SPARK_MASTER_OPTS", "SPARK_WORKER_OPTS", "SPARK_HISTORY_OPTS", "SPARK_DAEMON_MEMORY", "PYSPARK_PYTHON"], name)])}: the module sets it. Set Spark properties in master.conf and worker.conf, heaps in daemon_memory_mib of master, worker and history, options of all daemons' JVMs in SPARK_DAEMON_JAVA_OPTS, and Python in python."
  }
}

variable "secrets" {
  description = "Secrets for the master and the workers, by name, as in a group's `container.secrets`: `version`, and `target` and `mode`. Containers find them in `/run/secrets/<name>`, other members on `systemd` in `$CREDENTIALS_DIRECTORY/<name>`. Not on `process`."
  type = map(object({
    version = string
    target  = optional(string)
    mode    = optional(string)
  }))
  default  = {}
  nullable = false

  validation {
    condition     = length(var.secrets) == 0 || contains(["swarm", "systemd"], coalesce(var.cluster.engine, "process"))
    error_message = "secrets has ${join(", ", formatlist("\"%s\"", keys(var.secrets)))}, but the engine \"${coalesce(var.cluster.engine, "process")}\" has no secrets: omit them, or use \"swarm\" or \"systemd\"."
  }

  validation {
    condition     = alltrue([for name in keys(var.secrets) : can(regex("^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,62}$", name))])
    error_message = "secrets has ${join(", ", [for name in keys(var.secrets) : "\"${name}\"" if !can(regex("^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,62}$", name))])}: names consist of at most 63 letters, digits, underscores, dots and hyphens, and start with a letter or digit."
  }

  validation {
    condition     = alltrue([for secret in values(var.secrets) : try(trimspace(secret.version) != "", false)])
    error_message = "secrets has no version for ${join(", ", [for name, secret in var.secrets : "\"${name}\"" if !try(trimspace(secret.version) != "", false)])}: a new value is only noticed by its version, so start with \"1\"."
  }

  validation {
    condition     = alltrue([for secret in values(var.secrets) : secret.target == null ? true : can(regex("^/+[^/]", secret.target))])
    error_message = "secrets has the target ${join(", ", [for secret in values(var.secrets) : "\"${coalesce(secret.target, "-")}\"" if secret.target == null ? false : !can(regex("^/+[^/]", secret.target))])}: it must be the absolute path of a file, such as \"/etc/spark/spark-defaults.conf\"."
  }

  validation {
    condition     = alltrue([for secret in values(var.secrets) : secret.mode == null ? true : can(regex("^0?[0-7]{3}$", secret.mode))])
    error_message = "secrets has the mode ${join(", ", [for secret in values(var.secrets) : "\"${coalesce(secret.mode, "-")}\"" if secret.mode == null ? false : !can(regex("^0?[0-7]{3}$", secret.mode))])}: it must be permissions in octal digits, from \"0001\" to \"0777\"."
  }
}

variable "secret_values" {
  description = "Values of `secrets`, by name. They are in neither the plan nor the state. A new value takes effect when its `version` in `secrets` changes."
  type        = map(string)
  default     = {}
  nullable    = false
  sensitive   = true
  ephemeral   = true

  validation {
    condition     = toset(keys(var.secrets)) == toset(keys(var.secret_values))
    error_message = "secret_values must have a value for each name in secrets, and no others: ${length(var.secrets) == 0 ? "secrets has no names" : join(", ", formatlist("\"%s\"", keys(var.secrets)))}."
  }
}

variable "mounts" {
  description = "Storage for all members and submits, as in `trainyard_group`: your data, `history.dir`, `shuffle_dir`."
  type = list(object({
    target    = string
    type      = optional(string)
    source    = optional(string)
    read_only = optional(bool)
    size_mib  = optional(number)
    driver    = optional(object({ name = string, options = optional(map(string)) }))
  }))
  default = null

  validation {
    condition     = alltrue([for mount in coalesce(var.mounts, []) : startswith(mount.target, "/")])
    error_message = "mounts has the target ${join(", ", [for mount in coalesce(var.mounts, []) : "\"${mount.target}\"" if !startswith(mount.target, "/")])}: it must be an absolute path."
  }

  validation {
    condition     = alltrue([for mount in coalesce(var.mounts, []) : contains(["bind", "volume", "tmpfs"], coalesce(mount.type, "bind"))])
    error_message = "mounts has the type ${join(", ", [for mount in coalesce(var.mounts, []) : "\"${coalesce(mount.type, "bind")}\"" if !contains(["bind", "volume", "tmpfs"], coalesce(mount.type, "bind"))])}: it must be \"bind\", \"volume\" or \"tmpfs\"."
  }
}

variable "conf" {
  description = "Spark properties that submits start with, by name. They override those that the module sets; `submit` also has its own `conf`. Not for secrets, as they are stored in plain text and shown in process lists: use `secrets`."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for name in keys(var.conf) : can(regex("^spark\\.[A-Za-z0-9_.-]+$", name))])
    error_message = "conf has ${join(", ", [for name in keys(var.conf) : "\"${name}\"" if !can(regex("^spark\\.[A-Za-z0-9_.-]+$", name))])}: names of Spark's properties start with \"spark.\"."
  }
}

variable "master" {
  description = "The master: `port`, `web_port` of its web UI, `published_port` to publish the web UI on its Swarm host, `recovery_dir` for its state (so that applications outlive the master), `conf` for its own Spark properties, `daemon_memory_mib` for its heap, and, as in a role of `trainyard_group`, `env`, `resources`, `placement` and `mounts`. `env` and `mounts` are added to the module's."
  type = object({
    port              = optional(number, 7077)
    web_port          = optional(number, 8080)
    published_port    = optional(number)
    recovery_dir      = optional(string)
    conf              = optional(map(string), {})
    daemon_memory_mib = optional(number, 512)
    env               = optional(map(string), {})
    resources = optional(object({
      cpus       = optional(number)
      memory_mib = optional(number)
      limits     = optional(object({ cpus = optional(number), memory_mib = optional(number) }))
    }))
    placement = optional(object({
      hosts     = optional(list(string))
      labels    = optional(map(string))
      strategy  = optional(string)
      spread_by = optional(string)
    }))
    mounts = optional(list(object({
      target    = string
      type      = optional(string)
      source    = optional(string)
      read_only = optional(bool)
      size_mib  = optional(number)
      driver    = optional(object({ name = string, options = optional(map(string)) }))
    })))
  })
  default  = {}
  nullable = false

  validation {
    condition     = var.master.port >= 1 && var.master.port <= 65535 && floor(var.master.port) == var.master.port
    error_message = "master.port is ${var.master.port}: it must be a whole number from 1 to 65535."
  }

  validation {
    condition     = var.master.web_port >= 1 && var.master.web_port <= 65535 && floor(var.master.web_port) == var.master.web_port
    error_message = "master.web_port is ${var.master.web_port}: it must be a whole number from 1 to 65535."
  }

  validation {
    condition     = var.master.web_port != var.master.port
    error_message = "master.web_port is ${var.master.web_port}, the same as master.port: the web UI needs its own port."
  }

  validation {
    condition     = try(var.master.published_port, null) == null ? true : var.master.published_port >= 1 && var.master.published_port <= 65535 && floor(var.master.published_port) == var.master.published_port
    error_message = "master.published_port is ${try(coalesce(var.master.published_port, 0), 0)}: it must be a whole number from 1 to 65535. Omit it to publish no port."
  }

  validation {
    condition     = try(var.master.published_port, null) == null || var.cluster.engine == "swarm"
    error_message = "master.published_port is ${try(coalesce(var.master.published_port, 0), 0)}, but only a Swarm publishes ports: omit it. On other engines, the web UI listens at master.web_port on its host."
  }

  validation {
    condition     = var.master.recovery_dir == null ? true : can(regex("^/[^\\s\"'\\\\]*$", var.master.recovery_dir))
    error_message = "master.recovery_dir is \"${coalesce(var.master.recovery_dir, "-")}\": it must be an absolute path without spaces or quotes, such as \"/srv/spark/recovery\"."
  }

  validation {
    condition     = alltrue([for name, value in var.master.conf : can(regex("^spark\\.[A-Za-z0-9_.-]+$", name)) && !can(regex("[\\s\"'\\\\]", value))])
    error_message = "master.conf has ${join(", ", [for name, value in var.master.conf : "${name}=${value}" if !can(regex("^spark\\.[A-Za-z0-9_.-]+$", name)) || can(regex("[\\s\"'\\\\]", value))])}: names start with \"spark.\", and values have no spaces, quotes or backslashes."
  }

  validation {
    condition     = var.master.daemon_memory_mib >= 64 && floor(var.master.daemon_memory_mib) == var.master.daemon_memory_mib
    error_message = "master.daemon_memory_mib is ${var.master.daemon_memory_mib}: it must be a whole number, 64 or more."
  }

  validation {
    condition     = alltrue([for name in keys(var.master.env) : can(regex("^[A-Za-z_][A-Za-z0-9_]*$", name)) && !startswith(name, "TRAINYARD_")])
    error_message = "master.env has ${join(", ", [for name in keys(var.master.env) : "\"${name}\"" if !can(regex("^[A-Za-z_][A-Za-z0-9_]*$", name)) || startswith(name, "TRAINYARD_")])}: names consist of letters, digits and underscores, and don't start with a digit; the prefix TRAINYARD_ is reserved."
  }

  validation {
    condition     = length(setintersection(keys(var.master.env), ["SPARK_MASTER_OPTS", "SPARK_DAEMON_MEMORY"])) == 0
    error_message = "master.env has ${join(", ", [for name in keys(var.master.env) : "\"${name}\"" if contains(["SPARK_MASTER_OPTS", "SPARK_DAEMON_MEMORY"], name)])}: the module sets it. Set Spark properties in master.conf, and the heap in master.daemon_memory_mib."
  }

  validation {
    condition     = alltrue([for mount in coalesce(var.master.mounts, []) : startswith(mount.target, "/")])
    error_message = "master.mounts has the target ${join(", ", [for mount in coalesce(var.master.mounts, []) : "\"${mount.target}\"" if !startswith(mount.target, "/")])}: it must be an absolute path."
  }

  validation {
    condition     = alltrue([for mount in coalesce(var.master.mounts, []) : contains(["bind", "volume", "tmpfs"], coalesce(mount.type, "bind"))])
    error_message = "master.mounts has the type ${join(", ", [for mount in coalesce(var.master.mounts, []) : "\"${coalesce(mount.type, "bind")}\"" if !contains(["bind", "volume", "tmpfs"], coalesce(mount.type, "bind"))])}: it must be \"bind\", \"volume\" or \"tmpfs\"."
  }
}

variable "worker" {
  description = "The workers: what each offers to applications (`cores`, `memory_mib`), their number (`replicas`, 2 by default; omit it with `autoscale`), `port` (any free one by default), `web_port` (other workers on the host take the next free ones), `scratch_dir` for data that applications spill, `grace_period`, `image`, `gpus` (`pool`, `count`, `memory_mib`, and `per_task`: GPUs per task), and, as for `master`, `conf`, `daemon_memory_mib`, `env`, `resources`, `placement` and `mounts`."
  type = object({
    replicas          = optional(number)
    cores             = optional(number, 1)
    memory_mib        = optional(number, 1024)
    port              = optional(number)
    web_port          = optional(number, 8081)
    scratch_dir       = optional(string)
    grace_period      = optional(string, "30s")
    image             = optional(string)
    conf              = optional(map(string), {})
    daemon_memory_mib = optional(number, 512)
    env               = optional(map(string), {})
    gpus = optional(object({
      pool       = string
      count      = optional(number)
      memory_mib = optional(number)
      per_task   = optional(number, 1)
    }))
    resources = optional(object({
      cpus       = optional(number)
      memory_mib = optional(number)
      limits     = optional(object({ cpus = optional(number), memory_mib = optional(number) }))
    }))
    placement = optional(object({
      hosts     = optional(list(string))
      labels    = optional(map(string))
      strategy  = optional(string)
      spread_by = optional(string)
    }))
    mounts = optional(list(object({
      target    = string
      type      = optional(string)
      source    = optional(string)
      read_only = optional(bool)
      size_mib  = optional(number)
      driver    = optional(object({ name = string, options = optional(map(string)) }))
    })))
  })
  default  = {}
  nullable = false

  validation {
    condition     = var.worker.replicas == null ? true : var.worker.replicas >= 0 && var.worker.replicas <= 10000 && floor(var.worker.replicas) == var.worker.replicas
    error_message = "worker.replicas is ${coalesce(var.worker.replicas, 0)}: it must be a whole number from 0 to 10000."
  }

  validation {
    condition     = var.worker.cores >= 1 && floor(var.worker.cores) == var.worker.cores
    error_message = "worker.cores is ${var.worker.cores}: it must be a whole number, 1 or more."
  }

  validation {
    condition     = var.worker.memory_mib >= 512 && floor(var.worker.memory_mib) == var.worker.memory_mib
    error_message = "worker.memory_mib is ${var.worker.memory_mib}: it must be a whole number, 512 or more, because an executor needs that much."
  }

  validation {
    condition     = var.worker.port == null ? true : var.worker.port >= 1 && var.worker.port <= 65535 && floor(var.worker.port) == var.worker.port
    error_message = "worker.port is ${coalesce(var.worker.port, 0)}: it must be a whole number from 1 to 65535. Omit it for any free port."
  }

  validation {
    condition     = var.worker.web_port >= 0 && var.worker.web_port <= 65535 && floor(var.worker.web_port) == var.worker.web_port
    error_message = "worker.web_port is ${var.worker.web_port}: it must be a whole number from 1 to 65535, or 0 for any free port."
  }

  validation {
    condition     = var.worker.scratch_dir == null ? true : startswith(var.worker.scratch_dir, "/")
    error_message = "worker.scratch_dir is \"${coalesce(var.worker.scratch_dir, "-")}\": it must be an absolute path, such as \"/mnt/nvme\"."
  }

  validation {
    condition     = can(regex("^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$", var.worker.grace_period))
    error_message = "worker.grace_period is \"${var.worker.grace_period}\": it must be a duration with the units ms, s, m or h, such as \"1m\"."
  }

  validation {
    condition     = var.worker.image == null ? true : trimspace(var.worker.image) != ""
    error_message = "worker.image is empty: it must be the name of an image. Omit it to use image."
  }

  validation {
    condition     = alltrue([for name, value in var.worker.conf : can(regex("^spark\\.[A-Za-z0-9_.-]+$", name)) && !can(regex("[\\s\"'\\\\]", value))])
    error_message = "worker.conf has ${join(", ", [for name, value in var.worker.conf : "${name}=${value}" if !can(regex("^spark\\.[A-Za-z0-9_.-]+$", name)) || can(regex("[\\s\"'\\\\]", value))])}: names start with \"spark.\", and values have no spaces, quotes or backslashes."
  }

  validation {
    condition     = var.worker.daemon_memory_mib >= 64 && floor(var.worker.daemon_memory_mib) == var.worker.daemon_memory_mib
    error_message = "worker.daemon_memory_mib is ${var.worker.daemon_memory_mib}: it must be a whole number, 64 or more."
  }

  validation {
    condition     = alltrue([for name in keys(var.worker.env) : can(regex("^[A-Za-z_][A-Za-z0-9_]*$", name)) && !startswith(name, "TRAINYARD_")])
    error_message = "worker.env has ${join(", ", [for name in keys(var.worker.env) : "\"${name}\"" if !can(regex("^[A-Za-z_][A-Za-z0-9_]*$", name)) || startswith(name, "TRAINYARD_")])}: names consist of letters, digits and underscores, and don't start with a digit; the prefix TRAINYARD_ is reserved."
  }

  validation {
    condition     = length(setintersection(keys(var.worker.env), ["SPARK_WORKER_OPTS", "SPARK_DAEMON_MEMORY", "SPARK_LOCAL_DIRS"])) == 0
    error_message = "worker.env has ${join(", ", [for name in keys(var.worker.env) : "\"${name}\"" if contains(["SPARK_WORKER_OPTS", "SPARK_DAEMON_MEMORY", "SPARK_LOCAL_DIRS"], name)])}: the module sets it. Set Spark properties in worker.conf, the heap in worker.daemon_memory_mib, and the folder for data that applications spill in worker.scratch_dir."
  }

  validation {
    condition     = try(var.worker.gpus.count, null) == null ? true : var.worker.gpus.count >= 1 && floor(var.worker.gpus.count) == var.worker.gpus.count
    error_message = "worker.gpus.count is ${try(coalesce(var.worker.gpus.count, 0), 0)}: it must be a whole number, 1 or more. For no GPUs, omit gpus."
  }

  validation {
    condition     = var.worker.gpus == null ? true : var.worker.gpus.per_task > 0 && (var.worker.gpus.per_task <= 0.5 || floor(var.worker.gpus.per_task) == var.worker.gpus.per_task)
    error_message = "worker.gpus.per_task is ${try(var.worker.gpus.per_task, 0)}: it must be a whole number, 1 or more, or a fraction of one GPU, above 0 and at most 0.5."
  }

  validation {
    condition     = try(var.worker.gpus.per_task <= coalesce(var.worker.gpus.count, 1), true)
    error_message = "worker.gpus.per_task is ${try(var.worker.gpus.per_task, 0)}: it must be at most worker.gpus.count (${try(coalesce(var.worker.gpus.count, 1), 1)}), the GPUs of a worker, because no task could start."
  }

  validation {
    condition     = alltrue([for mount in coalesce(var.worker.mounts, []) : startswith(mount.target, "/")])
    error_message = "worker.mounts has the target ${join(", ", [for mount in coalesce(var.worker.mounts, []) : "\"${mount.target}\"" if !startswith(mount.target, "/")])}: it must be an absolute path."
  }

  validation {
    condition     = alltrue([for mount in coalesce(var.worker.mounts, []) : contains(["bind", "volume", "tmpfs"], coalesce(mount.type, "bind"))])
    error_message = "worker.mounts has the type ${join(", ", [for mount in coalesce(var.worker.mounts, []) : "\"${coalesce(mount.type, "bind")}\"" if !contains(["bind", "volume", "tmpfs"], coalesce(mount.type, "bind"))])}: it must be \"bind\", \"volume\" or \"tmpfs\"."
  }
}

variable "autoscale" {
  description = "Lets the number of workers follow the applications that the master reports, from `min` to `max`: `workers_per_application` for each application that waits or runs, or the number under its name in `applications`. Workers are removed only while no application runs, and only after `idle` (2m). `interval` (5s) is the time between two decisions. `heat` adds the rule of P. Stolin's autoscaler, which follows the workers' CPU usage in percent of `worker.resources.cpus`, and with `worker.gpus` also how busy their GPUs are; `{}` uses its published settings. `vertical` recommends CPUs and memory of a worker from what workers use, between `min` and `max` of `cpus` and `memory_mib`. With `dry_run`, the policy only reports what it would do."
  type = object({
    min                     = optional(number, 1)
    max                     = number
    workers_per_application = optional(number, 2)
    applications            = optional(map(number), {})
    idle                    = optional(string, "2m")
    interval                = optional(string, "5s")
    dry_run                 = optional(bool, false)
    heat = optional(object({
      lower      = optional(number, 20)
      upper      = optional(number, 60)
      target     = optional(number, 50)
      recurrence = optional(number, 3)
      cooldown   = optional(string, "3m")
    }))
    vertical = optional(object({
      cpus       = optional(object({ min = number, max = number }))
      memory_mib = optional(object({ min = number, max = number }))
    }))
  })
  default = null

  validation {
    condition     = var.autoscale == null ? true : var.autoscale.min >= 0 && floor(var.autoscale.min) == var.autoscale.min
    error_message = "autoscale.min is ${try(var.autoscale.min, 0)}: it must be a whole number, 0 or more."
  }

  validation {
    condition     = var.autoscale == null ? true : var.autoscale.max >= max(var.autoscale.min, 1) && var.autoscale.max <= 10000 && floor(var.autoscale.max) == var.autoscale.max
    error_message = "autoscale.max is ${try(var.autoscale.max, 0)}: it must be a whole number from 1 to 10000, and at least autoscale.min (${try(var.autoscale.min, 0)})."
  }

  validation {
    condition     = var.autoscale == null ? true : alltrue([for count in concat([var.autoscale.workers_per_application], values(var.autoscale.applications)) : count >= 1 && count <= var.autoscale.max && floor(count) == count])
    error_message = "autoscale.workers_per_application is ${try(var.autoscale.workers_per_application, 0)}, and autoscale.applications is ${jsonencode(try(var.autoscale.applications, {}))}: each number must be whole, from 1 to autoscale.max (${try(var.autoscale.max, 0)}), because an application that needs more workers would wait forever."
  }

  validation {
    condition     = var.autoscale == null ? true : alltrue([for name in keys(var.autoscale.applications) : can(regex("^[a-z]([a-z0-9-]{0,48}[a-z0-9])?$", name))])
    error_message = "autoscale.applications has ${join(", ", [for name in keys(try(var.autoscale.applications, {})) : "\"${name}\"" if !can(regex("^[a-z]([a-z0-9-]{0,48}[a-z0-9])?$", name))])}: names of applications must be DNS labels of at most 50 characters, like the name of a submit."
  }

  validation {
    condition     = alltrue([for duration in compact([try(var.autoscale.idle, null), try(var.autoscale.interval, null), try(var.autoscale.heat.cooldown, null)]) : can(regex("^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$", duration))])
    error_message = "autoscale.idle is \"${try(var.autoscale.idle, "")}\", autoscale.interval \"${try(var.autoscale.interval, "")}\", autoscale.heat.cooldown \"${try(var.autoscale.heat.cooldown, "")}\": each must be a duration with the units ms, s, m or h, such as \"2m\"."
  }

  validation {
    condition     = try(var.autoscale.heat, null) == null ? true : var.autoscale.heat.lower >= 0 && var.autoscale.heat.lower < var.autoscale.heat.upper && var.autoscale.heat.target > 0
    error_message = "autoscale.heat has lower ${try(var.autoscale.heat.lower, 0)}, upper ${try(var.autoscale.heat.upper, 0)}, target ${try(var.autoscale.heat.target, 0)}: lower must be at least 0 and below upper, and target above 0, all in percent."
  }

  validation {
    condition     = try(var.autoscale.heat, null) == null ? true : var.autoscale.heat.recurrence >= 1 && floor(var.autoscale.heat.recurrence) == var.autoscale.heat.recurrence
    error_message = "autoscale.heat.recurrence is ${try(var.autoscale.heat.recurrence, 0)}: it must be a whole number, 1 or more."
  }

  validation {
    condition     = var.autoscale == null || var.worker.replicas == null
    error_message = "worker.replicas is ${coalesce(var.worker.replicas, 0)}, but autoscale is set: omit worker.replicas, because the policy sets the number of workers, from autoscale.min to autoscale.max."
  }

  validation {
    condition     = try(var.autoscale.heat, null) == null || try(var.worker.resources.cpus, null) != null
    error_message = "autoscale.heat is set, but worker.resources.cpus is not: CPU usage is measured in percent of the CPUs that workers request. Set worker.resources.cpus."
  }

  validation {
    condition     = try(var.autoscale.vertical, null) == null ? true : var.autoscale.vertical.cpus != null || var.autoscale.vertical.memory_mib != null
    error_message = "autoscale.vertical is ${jsonencode(try(var.autoscale.vertical, null))}: set the bounds of cpus, memory_mib or both, such as cpus = { min = 1, max = 8 }."
  }

  validation {
    condition     = alltrue([for bounds in [try(var.autoscale.vertical.cpus, null), try(var.autoscale.vertical.memory_mib, null)] : bounds == null ? true : bounds.min > 0 && bounds.min <= bounds.max])
    error_message = "autoscale.vertical is ${jsonencode(try(var.autoscale.vertical, null))}: min must be above 0, and max at least min."
  }

  validation {
    condition     = try(var.autoscale.vertical.memory_mib, null) == null ? true : floor(var.autoscale.vertical.memory_mib.min) == var.autoscale.vertical.memory_mib.min && floor(var.autoscale.vertical.memory_mib.max) == var.autoscale.vertical.memory_mib.max
    error_message = "autoscale.vertical.memory_mib is ${jsonencode(try(var.autoscale.vertical.memory_mib, null))}: min and max must be whole numbers of MiB, such as { min = 2048, max = 32768 }."
  }
}

variable "rapids" {
  description = "RAPIDS plugin, which runs queries on the workers' GPUs: `jar` (path or URL of `rapids-4-spark`), and its settings, which default to the values in P. Stolin's paper."
  type = object({
    jar              = string
    alloc_fraction   = optional(number, 1)
    pool             = optional(string, "ARENA")
    debug            = optional(string, "NONE")
    incompatible_ops = optional(bool, false)
  })
  default = null

  validation {
    condition     = var.rapids == null || var.worker.gpus != null
    error_message = "rapids is set, but worker.gpus is not: the plugin needs GPUs. Set worker.gpus, or omit rapids."
  }

  validation {
    condition     = var.rapids == null ? true : can(regex("\\.jar$", var.rapids.jar))
    error_message = "rapids.jar is \"${try(var.rapids.jar, "")}\": it must be the path or URL of a .jar file."
  }

  validation {
    condition     = var.rapids == null ? true : var.rapids.alloc_fraction > 0 && var.rapids.alloc_fraction <= 1
    error_message = "rapids.alloc_fraction is ${try(var.rapids.alloc_fraction, 0)}: it must be above 0 and at most 1."
  }

  validation {
    condition     = var.rapids == null ? true : contains(["ARENA", "ASYNC", "DEFAULT", "NONE"], var.rapids.pool) && contains(["NONE", "STDERR", "STDOUT"], var.rapids.debug)
    error_message = "rapids.pool is \"${try(var.rapids.pool, "")}\", and rapids.debug is \"${try(var.rapids.debug, "")}\": pool must be \"ARENA\", \"ASYNC\", \"DEFAULT\" or \"NONE\", and debug \"NONE\", \"STDERR\" or \"STDOUT\"."
  }
}

variable "history" {
  description = "History server, in a separate group. It reads the event logs that drivers write to `dir`, on shared storage or on a single host. Also: `port`, `published_port` to publish it on its Swarm host, `daemon_memory_mib`, `resources`, `placement`."
  type = object({
    dir               = string
    port              = optional(number, 18080)
    published_port    = optional(number)
    daemon_memory_mib = optional(number, 512)
    resources         = optional(object({ cpus = optional(number), memory_mib = optional(number) }))
    placement         = optional(object({ hosts = optional(list(string)), labels = optional(map(string)) }))
  })
  default = null

  validation {
    condition     = var.history == null ? true : can(regex("^/[^\\s\"'\\\\]*$", var.history.dir))
    error_message = "history.dir is \"${try(var.history.dir, "")}\": it must be an absolute path without spaces or quotes, such as \"/srv/spark/events\"."
  }

  validation {
    condition     = var.history == null ? true : var.history.port >= 1 && var.history.port <= 65535 && floor(var.history.port) == var.history.port
    error_message = "history.port is ${try(var.history.port, 0)}: it must be a whole number from 1 to 65535."
  }

  validation {
    condition     = var.history == null ? true : var.history.daemon_memory_mib >= 64 && floor(var.history.daemon_memory_mib) == var.history.daemon_memory_mib
    error_message = "history.daemon_memory_mib is ${try(var.history.daemon_memory_mib, 0)}: it must be a whole number, 64 or more."
  }

  validation {
    condition     = try(var.history.published_port, null) == null ? true : var.history.published_port >= 1 && var.history.published_port <= 65535 && floor(var.history.published_port) == var.history.published_port
    error_message = "history.published_port is ${try(coalesce(var.history.published_port, 0), 0)}: it must be a whole number from 1 to 65535. Omit it to publish no port."
  }

  validation {
    condition     = try(var.history.published_port, null) == null || var.cluster.engine == "swarm"
    error_message = "history.published_port is ${try(coalesce(var.history.published_port, 0), 0)}, but only a Swarm publishes ports: omit it. On other engines, the web UI listens at history.port on its host."
  }
}

variable "shuffle_dir" {
  description = "Folder on shared storage to which a worker that is being removed moves the data that applications still need, within `worker.grace_period`. With it, the policy also removes workers while applications run."
  type        = string
  default     = null

  validation {
    condition     = var.shuffle_dir == null ? true : can(regex("^/[^\\s\"'\\\\]+$", var.shuffle_dir))
    error_message = "shuffle_dir is \"${coalesce(var.shuffle_dir, "-")}\": it must be an absolute path without spaces or quotes, such as \"/mnt/nas/shuffle\"."
  }
}

variable "priority" {
  description = "Priority over other groups: roles under an autoscaling policy in groups of lower priority give way to it."
  type        = number
  default     = null

  validation {
    condition     = var.priority == null ? true : floor(var.priority) == var.priority
    error_message = "priority is ${coalesce(var.priority, 0)}: it must be a whole number."
  }
}

variable "triggers" {
  description = "Arbitrary strings by arbitrary names. Changing one restarts the master and the workers."
  type        = map(string)
  default     = null
}

variable "timeouts" {
  description = "Maximum duration of an apply (`create`, `update`) and of a destroy (`delete`), such as `2h`."
  type = object({
    create = optional(string)
    update = optional(string)
    delete = optional(string)
  })
  default = null

  validation {
    condition     = alltrue([for timeout in values(var.timeouts == null ? { create = null, update = null, delete = null } : var.timeouts) : timeout == null ? true : can(regex("^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$", timeout))])
    error_message = "timeouts is ${jsonencode(var.timeouts)}: each must be a duration with the units ms, s, m or h, such as \"2h\"."
  }
}
