variable "spark" {
  description = "The Spark cluster, passed as a whole: `module.spark`. From elsewhere, such as a pipeline, its `cluster`, the URL of its `master` and its `conf` are enough, and what is requested is not compared with the cluster's `capacity`. Without `conf`, an application requests no GPUs, writes no event log, and loses data with a worker that leaves, despite `shuffle_dir`. On `swarm`, also the image: `runtime = { image = … }`."
  type = object({
    name = optional(string)
    cluster = object({
      name     = string
      engine   = optional(string)
      endpoint = optional(string)
    })
    master = string
    conf   = optional(map(string), {})
    executor = optional(object({
      workers      = optional(number, 2)
      applications = optional(map(number), {})
      cores        = optional(number, 1)
      memory_mib   = optional(number, 1024)
    }), {})
    capacity = optional(object({
      workers    = number
      cores      = number
      memory_mib = number
      gpus       = optional(number, 0)
      dry_run    = optional(bool, false)
    }))
    runtime = optional(object({
      image  = optional(string)
      bin    = optional(string)
      python = optional(string, "python3")
      env    = optional(map(string), {})
      mounts = optional(list(object({
        target    = string
        type      = optional(string)
        source    = optional(string)
        read_only = optional(bool)
        size_mib  = optional(number)
        driver    = optional(object({ name = string, options = optional(map(string)) }))
      })))
    }), {})
  })
  nullable = false

  # The output of a module spark is null for a refresh while its master is missing.
  validation {
    condition     = var.spark.master == null ? var.spark.name != null : can(regex("^spark://(\\[[0-9a-fA-F:]+\\]|[^][/:,]+):[0-9]+(,(\\[[0-9a-fA-F:]+\\]|[^][/:,]+):[0-9]+)*$", var.spark.master))
    error_message = "spark.master is \"${try(coalesce(var.spark.master), "")}\": it must be the URL of a master, such as \"spark://spark-master-0:7077\"."
  }

  validation {
    condition     = var.spark.cluster.engine != "swarm" || var.spark.runtime.image != null
    error_message = "spark.runtime.image is not set: on a Swarm, the driver is a container, so set it, for example to \"registry.example.com/spark:4.3.0\"."
  }
}

variable "name" {
  description = "Name of the application and of its group. The group's member, the driver, is `<name>-driver-0`."
  type        = string
  default     = "train"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z]([a-z0-9-]{0,48}[a-z0-9])?$", var.name))
    error_message = "name is \"${var.name}\": it must be a DNS label of at most 50 characters (lower-case letters, digits and hyphens, starting with a letter), so that the member's name, <name>-driver-0, fits into 63 characters."
  }
}

variable "files" {
  description = "Folder or archive with your program. It is copied to all hosts and is the driver's working directory. If omitted, `program` is one of the module's own or an absolute path. On `swarm`, the image contains your program instead."
  type        = string
  default     = null

  validation {
    condition     = var.files == null || var.spark.cluster.engine != "swarm"
    error_message = "files is \"${coalesce(var.files, "-")}\", but containers on a Swarm don't get files: put the program in the image, and omit files."
  }
}

variable "program" {
  description = "Program to submit: a `.py` or `.jar` in `files`, an absolute path on the hosts or in the image, or one of the module's own, `classification.py` and `regression.py`."
  type        = string
  default     = "classification.py"
  nullable    = false

  validation {
    condition     = can(regex("\\.(py|jar)$", var.program)) && !can(regex("\\s", var.program))
    error_message = "program is \"${var.program}\": it must be a .py or .jar file, without spaces."
  }

  validation {
    condition     = var.files != null || startswith(var.program, "/") || contains(["classification.py", "regression.py"], var.program)
    error_message = "program is \"${var.program}\", but files is not set: set files to the folder that contains the program, or program to an absolute path, \"classification.py\" or \"regression.py\"."
  }
}

variable "class" {
  description = "Main class of a `.jar`."
  type        = string
  default     = null

  validation {
    condition     = var.class == null ? true : endswith(var.program, ".jar")
    error_message = "class is \"${coalesce(var.class, "-")}\", but program is \"${var.program}\": only a .jar has a class. Omit class."
  }
}

variable "args" {
  description = "Arguments of the program. Can be templates, as in `trainyard_group`."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for arg in var.args : arg != null])
    error_message = "args is ${jsonencode(var.args)}: no argument can be null."
  }
}

variable "env" {
  description = "Additional environment variables of the driver, by name. The module's own programs read `ROWS`, `ROUNDS`, `MAX_DEPTH`, `SEED` and `MODEL`."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for name in keys(var.env) : can(regex("^[A-Za-z_][A-Za-z0-9_]*$", name)) && !startswith(name, "TRAINYARD_")])
    error_message = "env has ${join(", ", [for name in keys(var.env) : "\"${name}\"" if !can(regex("^[A-Za-z_][A-Za-z0-9_]*$", name)) || startswith(name, "TRAINYARD_")])}: names consist of letters, digits and underscores, and don't start with a digit; the prefix TRAINYARD_ is reserved."
  }

  validation {
    condition     = length(setintersection(keys(var.env), ["WORKERS", "PYSPARK_PYTHON"])) == 0
    error_message = "env has ${join(", ", [for name in keys(var.env) : "\"${name}\"" if contains(["WORKERS", "PYSPARK_PYTHON"], name)])}: the module sets it. Set workers, and the Spark cluster's python."
  }
}

variable "secrets" {
  description = "Secrets for the driver, by name, as in a group's `container.secrets`: `version`, and `target` and `mode`. Containers find them in `/run/secrets/<name>`, other members on `systemd` in `$CREDENTIALS_DIRECTORY/<name>`. Not on `process`."
  type = map(object({
    version = string
    target  = optional(string)
    mode    = optional(string)
  }))
  default  = {}
  nullable = false

  validation {
    condition     = length(var.secrets) == 0 || contains(["swarm", "systemd"], coalesce(var.spark.cluster.engine, "process"))
    error_message = "secrets has ${join(", ", formatlist("\"%s\"", keys(var.secrets)))}, but the engine \"${coalesce(var.spark.cluster.engine, "process")}\" has no secrets: omit them, or use \"swarm\" or \"systemd\"."
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

variable "conf" {
  description = "Spark properties of the application, by name. They override the cluster's, and those that the module sets. Not for secrets, as they are stored in plain text and shown in process lists: use `secrets`."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for name in keys(var.conf) : can(regex("^spark\\.[A-Za-z0-9_.-]+$", name))])
    error_message = "conf has ${join(", ", [for name in keys(var.conf) : "\"${name}\"" if !can(regex("^spark\\.[A-Za-z0-9_.-]+$", name))])}: names of Spark's properties start with \"spark.\"."
  }
}

variable "workers" {
  description = "Number of executors, one per worker, that the program starts with and reads from `WORKERS`: XGBoost's `num_workers`. Defaults to what the cluster said at the last submit: its replicas, or the number that its policy provides for an application."
  type        = number
  default     = null

  validation {
    condition     = var.workers == null ? true : var.workers >= 1 && var.workers <= 10000 && floor(var.workers) == var.workers
    error_message = "workers is ${coalesce(var.workers, 0)}: it must be a whole number from 1 to 10000."
  }
}

variable "executor" {
  description = "Resources of an executor: `cores` and `memory_mib` (its heap). Defaults to all of a worker, as of the last submit."
  type = object({
    cores      = optional(number)
    memory_mib = optional(number)
  })
  default  = {}
  nullable = false

  validation {
    condition     = var.executor.cores == null ? true : var.executor.cores >= 1 && floor(var.executor.cores) == var.executor.cores
    error_message = "executor.cores is ${coalesce(var.executor.cores, 0)}: it must be a whole number, 1 or more."
  }

  validation {
    condition     = var.executor.memory_mib == null ? true : var.executor.memory_mib >= 471 && floor(var.executor.memory_mib) == var.executor.memory_mib
    error_message = "executor.memory_mib is ${coalesce(var.executor.memory_mib, 0)}: it must be a whole number, 471 or more, the minimum that Spark accepts."
  }
}

variable "driver" {
  description = "The driver: `memory_mib` (its heap), `port` (any free one by default), and, as in a role of `trainyard_group`, `resources`, `placement` and `mounts`. `mounts` are added to the cluster's."
  type = object({
    memory_mib = optional(number, 1024)
    port       = optional(number)
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
    condition     = var.driver.memory_mib >= 471 && floor(var.driver.memory_mib) == var.driver.memory_mib
    error_message = "driver.memory_mib is ${var.driver.memory_mib}: it must be a whole number, 471 or more, the minimum that Spark accepts."
  }

  validation {
    condition     = var.driver.port == null ? true : var.driver.port >= 1 && var.driver.port <= 65535 && floor(var.driver.port) == var.driver.port
    error_message = "driver.port is ${coalesce(var.driver.port, 0)}: it must be a whole number from 1 to 65535. Omit it for any free port."
  }

  validation {
    condition     = alltrue([for mount in coalesce(var.driver.mounts, []) : startswith(mount.target, "/")])
    error_message = "driver.mounts has the target ${join(", ", [for mount in coalesce(var.driver.mounts, []) : "\"${mount.target}\"" if !startswith(mount.target, "/")])}: it must be an absolute path."
  }

  validation {
    condition     = alltrue([for mount in coalesce(var.driver.mounts, []) : contains(["bind", "volume", "tmpfs"], coalesce(mount.type, "bind"))])
    error_message = "driver.mounts has the type ${join(", ", [for mount in coalesce(var.driver.mounts, []) : "\"${coalesce(mount.type, "bind")}\"" if !contains(["bind", "volume", "tmpfs"], coalesce(mount.type, "bind"))])}: it must be \"bind\", \"volume\" or \"tmpfs\"."
  }
}

variable "gang_timeout" {
  description = "Maximum time that the first task waits for all executors. Allow for the time that a policy takes to add workers, or that another application takes to end. After that, Spark starts with the executors that it has, and XGBoost, which needs all of them, fails."
  type        = string
  default     = "30m"
  nullable    = false

  validation {
    condition     = can(regex("^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$", var.gang_timeout))
    error_message = "gang_timeout is \"${var.gang_timeout}\": it must be a duration with the units ms, s, m or h, such as \"30m\"."
  }
}

variable "wait_for" {
  description = "What an apply waits for: `completed` (the application has completed) or `running` (only that its driver runs)."
  type        = string
  default     = "completed"
  nullable    = false

  validation {
    condition     = contains(["running", "completed"], var.wait_for)
    error_message = "wait_for is \"${var.wait_for}\": it must be \"running\" or \"completed\"."
  }
}

variable "deadline" {
  description = "Maximum time from the start until the application completes: a duration such as `12h`. After that, it has failed. Defaults to none."
  type        = string
  default     = null

  validation {
    condition     = var.deadline == null ? true : can(regex("^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$", var.deadline))
    error_message = "deadline is \"${coalesce(var.deadline, "-")}\": it must be a duration with the units ms, s, m or h, such as \"12h\"."
  }
}

variable "retries" {
  description = "Maximum number of times that a failed application is submitted again."
  type        = number
  default     = 0
  nullable    = false

  validation {
    condition     = var.retries >= 0 && floor(var.retries) == var.retries
    error_message = "retries is ${var.retries}: it must be a whole number, 0 or more."
  }
}

variable "priority" {
  description = "Priority over other groups: roles under an autoscaling policy in groups of lower priority give way to the driver's."
  type        = number
  default     = null

  validation {
    condition     = var.priority == null ? true : floor(var.priority) == var.priority
    error_message = "priority is ${coalesce(var.priority, 0)}: it must be a whole number."
  }
}

variable "triggers" {
  description = "Arbitrary strings by arbitrary names, such as `{ commit = var.commit }`. Changing one submits the application again, even if it has completed."
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
