variable "cluster" {
  description = "Cluster that training runs on, as a whole: `trainyard_cluster.lab`. Its `hosts` are only used with `network`."
  type = object({
    name     = string
    engine   = optional(string)
    endpoint = optional(string)
    hosts = optional(map(object({
      address  = optional(string)
      socket   = optional(string)
      labels   = optional(map(string))
      capacity = optional(object({ cpus = optional(number), memory_mib = optional(number) }))
    })))
  })
  nullable = false

  validation {
    condition     = contains(["process", "swarm", "systemd"], coalesce(var.cluster.engine, "process"))
    error_message = "cluster.engine is \"${coalesce(var.cluster.engine, "process")}\": it must be \"process\", \"swarm\" or \"systemd\"."
  }
}

variable "name" {
  description = "Name of the group. Its members are `<name>-worker-0` and so on; TensorBoard is `<name>-tensorboard-web-0`."
  type        = string
  default     = "multiworker"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z]([a-z0-9-]{0,43}[a-z0-9])?$", var.name))
    error_message = "name is \"${var.name}\": it must be a DNS label of at most 45 characters (lower-case letters, digits and hyphens, starting with a letter), so that members' names, such as <name>-tensorboard-web-0, fit into 63 characters."
  }
}

variable "network" {
  description = "Separate network, isolated from other groups, only on `swarm`: `{}`, or with `subnet`, in CIDR notation such as `10.10.0.0/24`, and `encrypted`. It belongs to a separate cluster, `<cluster>-<name>`, of the same hosts."
  type = object({
    subnet    = optional(string)
    encrypted = optional(bool)
  })
  default = null

  validation {
    condition     = var.network == null || var.cluster.engine == "swarm"
    error_message = "network is ${jsonencode(var.network)}, but only a Swarm has networks: omit it on the engine \"${coalesce(var.cluster.engine, "process")}\"."
  }

  validation {
    condition     = try(var.network.subnet, null) == null ? true : can(cidrhost(var.network.subnet, 0)) && !strcontains(var.network.subnet, ":")
    error_message = "network.subnet is \"${try(coalesce(var.network.subnet), "")}\": it must be an IPv4 range in CIDR notation, such as \"10.10.0.0/24\"."
  }

  validation {
    condition     = var.network == null || length("${var.cluster.name}-${var.name}") <= 63
    error_message = "network is set, but the name of its cluster, \"${var.cluster.name}-${var.name}\", has ${length("${var.cluster.name}-${var.name}")} characters, and at most 63 are allowed: shorten name."
  }
}

variable "files" {
  description = "Folder or archive with your program. It is copied to all hosts, and `command` runs in it. If `files` and `command` are omitted, the module's own program runs. Not on `swarm`, where your program has to be in `image`."
  type        = string
  default     = null

  validation {
    condition     = var.files == null || var.cluster.engine != "swarm"
    error_message = "files is \"${coalesce(var.files, "-")}\", but containers on a Swarm don't get files: put the program in the image, and omit files."
  }

  validation {
    condition     = var.files == null || var.command != null
    error_message = "files is \"${coalesce(var.files, "-")}\", but command is not set: set it to the program to run, such as [\"python3\", \"train.py\"]."
  }
}

variable "image" {
  description = "Container image with TensorFlow, and with your program if there is a `command`. Required on `swarm`. On `systemd`, members with an image run as containers. No effect on `process`."
  type        = string
  default     = null

  validation {
    condition     = var.image == null ? var.cluster.engine != "swarm" : trimspace(var.image) != ""
    error_message = "image is ${var.image == null ? "not set" : "empty"}: on a Swarm, members are containers, so set it, for example to \"tensorflow/tensorflow:2.21.0\". On other engines, omit it to run members without containers."
  }
}

variable "python" {
  description = "Python for the module's own program: a name on `PATH`, or an absolute path, such as in a virtual environment with TensorFlow."
  type        = string
  default     = "python3"
  nullable    = false

  validation {
    condition     = can(regex("^(/.*)?[^/\\s]+$", var.python))
    error_message = "python is \"${var.python}\": it must be the name of a program, such as \"python3\", or an absolute path, such as \"/opt/tensorflow/bin/python\"."
  }
}

variable "command" {
  description = "Your program and its first arguments, instead of the module's own program. It runs in the folder of `files`. Strings can be templates, as in `trainyard_group`."
  type        = list(string)
  default     = null

  validation {
    condition     = var.command == null ? true : length(var.command) > 0 && try(trimspace(var.command[0]), "") != ""
    error_message = "command is empty: it must name a program, such as [\"python3\", \"train.py\"]. Omit it to run the module's own."
  }
}

variable "args" {
  description = "Arguments that follow `command`. Strings can be templates: `--workers={{ addresses \"worker\" }}`."
  type        = list(string)
  default     = null

  validation {
    condition     = var.args == null || var.command != null
    error_message = "args is ${jsonencode(var.args)}, but command is not set: the module's own program takes no arguments. Set command, or use env and the other inputs."
  }
}

variable "env" {
  description = "Additional environment variables for all members, by name. They override those that the module sets."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for name in keys(var.env) : can(regex("^[A-Za-z_][A-Za-z0-9_]*$", name)) && !startswith(name, "TRAINYARD_")])
    error_message = "env has ${join(", ", [for name in keys(var.env) : "\"${name}\"" if !can(regex("^[A-Za-z_][A-Za-z0-9_]*$", name)) || startswith(name, "TRAINYARD_")])}: names consist of letters, digits and underscores, and don't start with a digit; the prefix TRAINYARD_ is reserved."
  }
}

variable "secrets" {
  description = "Secrets for all members, by name, as in a group's `container.secrets`: `version`, and `target` and `mode`. Containers find them in `/run/secrets/<name>`, other members on `systemd` in `$CREDENTIALS_DIRECTORY/<name>`. Not on `process`."
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
    error_message = "secrets has the target ${join(", ", [for secret in values(var.secrets) : "\"${coalesce(secret.target, "-")}\"" if secret.target == null ? false : !can(regex("^/+[^/]", secret.target))])}: it must be the absolute path of a file, such as \"/etc/trainer/token\"."
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
  description = "Storage for all members and TensorBoard, as in `trainyard_group`: for `log_dir`, `model_dir` and `initial_model`, or for your data."
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

variable "worker" {
  description = "Workers: `replicas`, the first `port`, and `gpus` (`pool`, `count`, `memory_mib`), `env`, `resources`, `placement` and `mounts` as in a role of `trainyard_group`. `mounts` are added to the module's."
  type = object({
    replicas = optional(number, 2)
    port     = optional(number, 5001)
    env      = optional(map(string))
    gpus = optional(object({
      pool       = string
      count      = optional(number)
      memory_mib = optional(number)
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
    condition     = var.worker.replicas >= 1 && var.worker.replicas <= 10000 && floor(var.worker.replicas) == var.worker.replicas
    error_message = "worker.replicas is ${var.worker.replicas}: it must be a whole number from 1 to 10000."
  }

  validation {
    condition     = var.worker.port >= 1 && var.worker.port <= 65535 && floor(var.worker.port) == var.worker.port
    error_message = "worker.port is ${var.worker.port}: it must be a whole number from 1 to 65535."
  }

  validation {
    condition     = alltrue([for name in keys(coalesce(var.worker.env, {})) : can(regex("^[A-Za-z_][A-Za-z0-9_]*$", name)) && !startswith(name, "TRAINYARD_")])
    error_message = "worker.env has ${join(", ", [for name in keys(coalesce(var.worker.env, {})) : "\"${name}\"" if !can(regex("^[A-Za-z_][A-Za-z0-9_]*$", name)) || startswith(name, "TRAINYARD_")])}: names consist of letters, digits and underscores, and don't start with a digit; the prefix TRAINYARD_ is reserved."
  }

  validation {
    condition     = try(var.worker.gpus.count, null) == null ? true : var.worker.gpus.count >= 1 && floor(var.worker.gpus.count) == var.worker.gpus.count
    error_message = "worker.gpus.count is ${try(coalesce(var.worker.gpus.count, 0), 0)}: it must be a whole number, 1 or more. For no GPUs, omit gpus."
  }

  validation {
    condition     = var.command != null || try(coalesce(var.worker.gpus.count, 1), 1) <= 1
    error_message = "worker.gpus.count is ${try(coalesce(var.worker.gpus.count, 0), 0)}, but the module's own program uses one GPU per worker: omit it, and increase worker.replicas instead, or set command to a program that uses several."
  }

  validation {
    condition     = var.worker.gpus == null || var.network == null
    error_message = "worker.gpus uses the pool \"${try(var.worker.gpus.pool, "")}\" of cluster, but with network the workers run in a separate cluster: omit worker.gpus or network."
  }
}

variable "batch_size" {
  description = "Number of examples per worker and step. Passed in `BATCH_SIZE`."
  type        = number
  default     = 64
  nullable    = false

  validation {
    condition     = var.batch_size >= 1 && floor(var.batch_size) == var.batch_size
    error_message = "batch_size is ${var.batch_size}: it must be a whole number, 1 or more."
  }
}

variable "epochs" {
  description = "Number of epochs. With `log_dir`, worker 0 saves a checkpoint after each. Passed in `EPOCHS`."
  type        = number
  default     = 12
  nullable    = false

  validation {
    condition     = var.epochs >= 1 && floor(var.epochs) == var.epochs
    error_message = "epochs is ${var.epochs}: it must be a whole number, 1 or more."
  }
}

variable "steps_per_epoch" {
  description = "Number of steps per epoch, which all workers take together. Passed in `STEPS_PER_EPOCH`."
  type        = number
  default     = 70
  nullable    = false

  validation {
    condition     = var.steps_per_epoch >= 1 && floor(var.steps_per_epoch) == var.steps_per_epoch
    error_message = "steps_per_epoch is ${var.steps_per_epoch}: it must be a whole number, 1 or more."
  }
}

variable "learning_rate" {
  description = "Learning rate. Passed in `LEARNING_RATE`."
  type        = number
  default     = 0.001
  nullable    = false

  validation {
    condition     = var.learning_rate > 0 && var.learning_rate <= 1
    error_message = "learning_rate is ${var.learning_rate}: it must be above 0 and at most 1."
  }
}

variable "seed" {
  description = "Seed of the initial weights. With a seed, operations are deterministic, and training with the same inputs ends with the same weights. `null` means no seed. Passed in `SEED`."
  type        = number
  default     = 1

  validation {
    condition     = var.seed == null ? true : var.seed >= 0 && var.seed <= 4294967295 && floor(var.seed) == var.seed
    error_message = "seed is ${var.seed == null ? 0 : var.seed}: it must be a whole number from 0 to 4294967295, or null."
  }
}

variable "initial_model" {
  description = "Model to continue training from: absolute path of a `.keras` file that worker 0 can access, such as the output `model` of another training. A checkpoint in `log_dir` takes precedence. Passed in `INITIAL_MODEL`."
  type        = string
  default     = null

  validation {
    condition     = var.initial_model == null ? true : can(regex("^/.*\\.keras$", var.initial_model))
    error_message = "initial_model is \"${coalesce(var.initial_model, "-")}\": it must be the absolute path of a .keras file, such as \"/srv/models/model.keras\"."
  }
}

variable "model_dir" {
  description = "Folder to which worker 0 saves the trained model as `model.keras`: an absolute path. If workers are containers, it has to be in one of their writable mounts. Passed in `MODEL_DIR`."
  type        = string
  default     = null

  validation {
    condition     = var.model_dir == null ? true : startswith(var.model_dir, "/")
    error_message = "model_dir is \"${coalesce(var.model_dir, "-")}\": it must be an absolute path, such as \"/srv/models\"."
  }
}

variable "log_dir" {
  description = "Folder for checkpoints and summaries, which worker 0 and TensorBoard can access: an absolute path, on shared storage or on the host of worker 0. With it, training resumes from the last epoch when members have restarted. If workers are containers, it has to be in one of their writable mounts. Passed in `LOG_DIR`."
  type        = string
  default     = null

  validation {
    condition     = var.log_dir == null ? true : startswith(var.log_dir, "/")
    error_message = "log_dir is \"${coalesce(var.log_dir, "-")}\": it must be an absolute path, such as \"/srv/logs\"."
  }
}

variable "join_timeout" {
  description = "Maximum time until all workers have joined: a duration such as `5m`. If a member is still missing after that, all restart, up to `max_restarts` times: no worker trains with fewer. More than 0s. Passed in `JOIN_TIMEOUT`."
  type        = string
  default     = "5m"
  nullable    = false

  validation {
    condition     = can(regex("^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$", var.join_timeout)) && can(regex("[1-9]", var.join_timeout))
    error_message = "join_timeout is \"${var.join_timeout}\": it must be a duration above 0 with the units ms, s, m or h, such as \"5m\"."
  }
}

variable "wait_for" {
  description = "What an apply waits for: `running` (all members run) or `completed` (training has completed)."
  type        = string
  default     = "running"
  nullable    = false

  validation {
    condition     = contains(["running", "completed"], var.wait_for)
    error_message = "wait_for is \"${var.wait_for}\": it must be \"running\" or \"completed\"."
  }
}

variable "deadline" {
  description = "Maximum time from the first start until training completes: a duration such as `12h`. After that, training has failed. Defaults to none."
  type        = string
  default     = null

  validation {
    condition     = var.deadline == null ? true : can(regex("^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$", var.deadline))
    error_message = "deadline is \"${coalesce(var.deadline, "-")}\": it must be a duration with the units ms, s, m or h, such as \"12h\"."
  }
}

variable "max_restarts" {
  description = "Maximum number of restarts; after that, training has failed. When one member fails, all of them restart. 0 means no limit."
  type        = number
  default     = 6
  nullable    = false

  validation {
    condition     = var.max_restarts >= 0 && floor(var.max_restarts) == var.max_restarts
    error_message = "max_restarts is ${var.max_restarts}: it must be a whole number, 0 or more. 0 means no limit."
  }
}

variable "grace_period" {
  description = "Time that a member has to end after the stop signal, before it is killed: a duration such as `30s`."
  type        = string
  default     = "10s"
  nullable    = false

  validation {
    condition     = can(regex("^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$", var.grace_period))
    error_message = "grace_period is \"${var.grace_period}\": it must be a duration with the units ms, s, m or h, such as \"30s\"."
  }
}

variable "priority" {
  description = "Priority of the group: any whole number; higher is more important. Roles under an autoscaling policy in groups of lower priority give way to it."
  type        = number
  default     = null

  validation {
    condition     = var.priority == null ? true : floor(var.priority) == var.priority
    error_message = "priority is ${coalesce(var.priority, 0)}: it must be a whole number."
  }
}

variable "triggers" {
  description = "Arbitrary strings by name. When one changes, training starts again, even if it has completed."
  type        = map(string)
  default     = null
}

variable "timeouts" {
  description = "Maximum duration of `create`, `update` and `delete`: how long an apply waits for training, and a destroy for its end."
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

variable "tensorboard" {
  description = "TensorBoard for `log_dir`, as a separate group: `{}` uses the defaults. `image` defaults to the module's, which has to include TensorBoard: TensorFlow's own images don't. It has no password: `port` is open to anyone who can reach the members, and `published_port` to anyone who can reach its host in the Swarm."
  type = object({
    image          = optional(string)
    command        = optional(list(string), ["tensorboard"])
    port           = optional(number, 6006)
    published_port = optional(number)
    resources      = optional(object({ cpus = optional(number), memory_mib = optional(number) }))
    placement      = optional(object({ hosts = optional(list(string)), labels = optional(map(string)) }))
  })
  default = null

  validation {
    condition     = var.tensorboard == null || var.log_dir != null
    error_message = "tensorboard is set, but log_dir is not: set log_dir to the folder that TensorBoard shows."
  }

  validation {
    condition     = var.tensorboard == null ? true : length(var.tensorboard.command) > 0
    error_message = "tensorboard.command is empty: it must name a program, such as [\"tensorboard\"]."
  }

  validation {
    condition     = var.tensorboard == null ? true : var.tensorboard.port >= 1 && var.tensorboard.port <= 65535 && floor(var.tensorboard.port) == var.tensorboard.port
    error_message = "tensorboard.port is ${try(var.tensorboard.port, 0)}: it must be a whole number from 1 to 65535."
  }

  validation {
    condition     = try(var.tensorboard.published_port, null) == null ? true : var.tensorboard.published_port >= 1 && var.tensorboard.published_port <= 65535 && floor(var.tensorboard.published_port) == var.tensorboard.published_port
    error_message = "tensorboard.published_port is ${try(coalesce(var.tensorboard.published_port, 0), 0)}: it must be a whole number from 1 to 65535. Omit it to publish no port."
  }

  validation {
    condition     = try(var.tensorboard.published_port, null) == null || var.cluster.engine == "swarm"
    error_message = "tensorboard.published_port is ${try(coalesce(var.tensorboard.published_port, 0), 0)}, but only a Swarm publishes ports: omit it. On other engines, TensorBoard listens at tensorboard.port on its host."
  }
}
