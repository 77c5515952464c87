variable "cluster" {
  description = "Cluster that the experiments run on, as a whole: `trainyard_cluster.lab`."
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
  description = "Name of the sweep. Each run is the member `<name>-<key>-0`; TensorBoard is `<name>-tensorboard-web-0`."
  type        = string
  default     = "experiments"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z]([a-z0-9-]{0,43}[a-z0-9])?$", var.name))
    error_message = "name is \"${var.name}\": it must be a DNS label of at most 45 characters (lower-case letters, digits and hyphens, starting with a letter), so that members' names, such as <name>-tensorboard-web-0, fit into 63 characters."
  }
}

variable "config" {
  description = "Config of all runs: an object with `market`, `learning` and `environment`. Omitted parameters are as in the paper that the module follows. With a `command` it can be any object, with your program's own parameters."
  type        = any
  default     = {}
  nullable    = false

  validation {
    condition     = can(keys(var.config))
    error_message = "config is ${jsonencode(var.config)}: it must be an object, such as { learning = { gamma = 0.9 } }."
  }
}

variable "runs" {
  description = "Runs by key, each with the parameters that it adds to `config` or overrides, such as `{ dqn = { environment = { agent = \"dqn\" } } }`. A change affects only that run. Keys must be known at plan time."
  type        = any
  default     = {}
  nullable    = false

  validation {
    condition     = can(keys(var.runs)) ? alltrue([for run in var.runs : can(keys(run))]) : false
    error_message = "runs is ${jsonencode(var.runs)}: it must be a map of objects, such as { dqn = { environment = { agent = \"dqn\" } } }."
  }
}

variable "seeds" {
  description = "Seeds. Each of `runs` is run once per seed, as `<key>-seed-<seed>`, with `environment.seed` set. Without `runs`, `config` is run once per seed, as `seed-<seed>`. `range(50)` gives 50 seeds."
  type        = list(number)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for seed in var.seeds : try(seed >= 0 && seed <= 4294967295 && floor(seed) == seed, false)]) && length(distinct(var.seeds)) == length(var.seeds)
    error_message = "seeds is ${jsonencode(var.seeds)}: they must be distinct whole numbers from 0 to 4294967295, such as range(50)."
  }

  validation {
    condition     = length(var.seeds) > 0 || try(length(var.runs), 1) > 0
    error_message = "neither seeds nor runs is set: set one of them. seeds = range(8) makes eight runs, and runs = { dqn = { environment = { agent = \"dqn\" } } } makes one."
  }

  validation {
    condition     = length(var.seeds) == 0 || !anytrue([for config in concat([var.config], try(values(var.runs), [])) : can(config.environment.seed)])
    error_message = "seeds is ${jsonencode(var.seeds)}, but config or runs also sets environment.seed: omit one of them."
  }

  validation {
    condition     = length(var.seeds) == 0 || alltrue([for config in concat([var.config], try(values(var.runs), [])) : can(keys(try(config.environment, {})))])
    error_message = "environment is ${join(" and ", distinct([for config in concat([var.config], try(values(var.runs), [])) : jsonencode(config.environment) if !can(keys(try(config.environment, {})))]))}, but seeds set environment.seed: make environment an object, or omit seeds."
  }
}

variable "started_by" {
  description = "Who starts the experiments, recorded with each result. Runs keep the value with which they were added, so a change restarts none of them."
  type        = string
  default     = null

  validation {
    condition     = var.started_by == null ? true : trimspace(var.started_by) != ""
    error_message = "started_by is empty: set it to a name, such as \"ada\", or omit it."
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
  description = "Container image with Python and NumPy, such as the one from `train/Dockerfile`, or with your program if there is a `command`. Required on `swarm`. On `systemd`, runs with an image are containers. No effect on `process`."
  type        = string
  default     = null

  validation {
    condition     = var.image == null ? var.cluster.engine != "swarm" : trimspace(var.image) != ""
    error_message = "image is ${var.image == null ? "not set" : "empty"}: on a Swarm, runs are containers, so set it, for example to \"registry.example.com/trainer:1.2\". On other engines, omit it to run runs without containers."
  }
}

variable "python" {
  description = "Python for the module's own program: a name on `PATH`, or an absolute path, such as in a virtual environment with NumPy."
  type        = string
  default     = "python3"
  nullable    = false

  validation {
    condition     = can(regex("^(/.*)?[^/\\s]+$", var.python))
    error_message = "python is \"${var.python}\": it must be the name of a program, such as \"python3\", or an absolute path, such as \"/opt/rl/bin/python\"."
  }
}

variable "command" {
  description = "Your program and its first arguments, instead of the module's own program. It runs in the folder of `files`. Strings can be templates, as in `trainyard_sweep`."
  type        = list(string)
  default     = null

  validation {
    condition     = var.command == null ? true : length(var.command) > 0 && try(trimspace(var.command[0]), "") != ""
    error_message = "command is empty: it must name a program, such as [\"python3\", \"train.py\"]. Omit it to run the module's own."
  }
}

variable "args" {
  description = "Arguments that follow `command`. Strings can be templates: `--seed={{ .Env.SEED }}`."
  type        = list(string)
  default     = null

  validation {
    condition     = var.args == null || var.command != null
    error_message = "args is ${jsonencode(var.args)}, but command is not set: the module's own program takes no arguments. Set command, or use config."
  }
}

variable "env" {
  description = "Additional environment variables for all runs, by name. They override those that the module sets."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for name in keys(var.env) : can(regex("^[A-Za-z_][A-Za-z0-9_]*$", name)) && !startswith(name, "TRAINYARD_")])
    error_message = "env has ${join(", ", [for name in keys(var.env) : "\"${name}\"" if !can(regex("^[A-Za-z_][A-Za-z0-9_]*$", name)) || startswith(name, "TRAINYARD_")])}: names consist of letters, digits and underscores, and don't start with a digit; the prefix TRAINYARD_ is reserved."
  }
}

variable "mounts" {
  description = "Storage for all runs and TensorBoard, as in `trainyard_sweep`: for `results.path`, or for your data."
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

variable "max_parallel" {
  description = "Maximum number of runs at a time. Defaults to as many as there is room for, or as `progress` finds; without `resources` and `gpus`, to the number of the hosts' CPUs."
  type        = number
  default     = null

  validation {
    condition     = var.max_parallel == null ? true : var.max_parallel >= 1 && floor(var.max_parallel) == var.max_parallel
    error_message = "max_parallel is ${coalesce(var.max_parallel, 0)}: it must be a whole number, 1 or more. Omit it for no fixed limit."
  }
}

variable "progress" {
  description = "Finds the number of runs at a time with the highest throughput, from the episodes that runs log: `{}` uses the defaults. `pattern`, `settle` and `threshold` are as in `trainyard_sweep`; your own program may need a `pattern`."
  type        = object({ pattern = optional(string), settle = optional(string), threshold = optional(number) })
  default     = null

  validation {
    condition     = try(var.progress.threshold, null) == null ? true : var.progress.threshold >= 0 && var.progress.threshold <= 1
    error_message = "progress.threshold is ${try(coalesce(var.progress.threshold, 0), 0)}: it must be from 0 to 1, as a share of what each run contributed so far: 0.05 is a twentieth."
  }

  validation {
    condition     = try(var.progress.settle, null) == null ? true : can(regex("^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$", var.progress.settle))
    error_message = "progress.settle is \"${try(coalesce(var.progress.settle), "")}\": it must be a duration with the units ms, s, m or h, such as \"1m\"."
  }

  validation {
    condition     = try(var.progress.pattern, null) == null ? true : trimspace(var.progress.pattern) != ""
    error_message = "progress.pattern is empty: it must be a regular expression that matches the step in a run's log, such as \"step (?P<step>[0-9]+)\". Omit it for the default."
  }
}

variable "resources" {
  description = "Resources that each run requests, as in `trainyard_sweep`: `cpus`, `memory_mib` and `limits`."
  type = object({
    cpus       = optional(number)
    memory_mib = optional(number)
    limits     = optional(object({ cpus = optional(number), memory_mib = optional(number) }))
  })
  default = null

  validation {
    condition     = alltrue([for number in compact([try(var.resources.cpus, null), try(var.resources.memory_mib, null), try(var.resources.limits.cpus, null), try(var.resources.limits.memory_mib, null)]) : number >= 0])
    error_message = "resources is ${jsonencode(var.resources)}: each number must be 0 or more."
  }
}

variable "gpus" {
  description = "GPUs of each run: `pool` (name of a GPU pool), `memory_mib` on each card (1199, as in the paper) and `count`. Defaults to none."
  type        = object({ pool = string, memory_mib = optional(number, 1199), count = optional(number) })
  default     = null

  validation {
    condition     = var.gpus == null ? true : trimspace(var.gpus.pool) != ""
    error_message = "gpus.pool is empty: it must be the name of a GPU pool, such as trainyard_gpu_pool.a40.name."
  }

  validation {
    condition     = var.gpus == null ? true : var.gpus.memory_mib >= 1 && floor(var.gpus.memory_mib) == var.gpus.memory_mib
    error_message = "gpus.memory_mib is ${try(var.gpus.memory_mib, 0)}: it must be a whole number, 1 or more."
  }

  validation {
    condition     = try(var.gpus.count, null) == null ? true : var.gpus.count >= 1 && floor(var.gpus.count) == var.gpus.count
    error_message = "gpus.count is ${try(coalesce(var.gpus.count, 0), 0)}: it must be a whole number, 1 or more. For no GPUs, omit gpus."
  }
}

variable "admission" {
  description = "Memory that has to be measured as free before a run starts: with `free_gpu_memory`, `gpus.memory_mib` plus `reserve_percent` on its card; with `free_memory`, `resources.memory_mib` on its host. `settle` is how long a card takes no other run after one has started on it."
  type = object({
    free_gpu_memory = optional(bool, true)
    free_memory     = optional(bool, false)
    reserve_percent = optional(number, 3)
    settle          = optional(string, "20s")
  })
  default  = {}
  nullable = false

  validation {
    condition     = var.admission.reserve_percent >= 0 && var.admission.reserve_percent < 100
    error_message = "admission.reserve_percent is ${var.admission.reserve_percent}: it must be at least 0 and below 100."
  }

  validation {
    condition     = can(regex("^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$", var.admission.settle))
    error_message = "admission.settle is \"${var.admission.settle}\": it must be a duration with the units ms, s, m or h, such as \"20s\"."
  }

  validation {
    condition     = !var.admission.free_memory || try(var.resources.memory_mib > 0, false)
    error_message = "admission.free_memory is true, but resources.memory_mib is not set: set it to the memory that must be free."
  }
}

variable "placement" {
  description = "Which hosts runs start on, as in `trainyard_sweep`."
  type = object({
    hosts     = optional(list(string))
    labels    = optional(map(string))
    strategy  = optional(string)
    spread_by = optional(string)
  })
  default = null

  validation {
    condition     = contains(["spread", "pack"], try(coalesce(var.placement.strategy, "spread"), "spread"))
    error_message = "placement.strategy is \"${try(coalesce(var.placement.strategy, ""), "")}\": it must be \"spread\" or \"pack\"."
  }
}

variable "retry" {
  description = "How often a failed run is retried: `max_attempts` (0 means no limit), `delay`, and `out_of_memory`, the number of attempts that may run out of GPU memory before the run is given up. `out_of_memory_patterns` match log lines with which your own program reports that."
  type = object({
    max_attempts           = optional(number, 3)
    delay                  = optional(string, "5s")
    out_of_memory          = optional(number, 5)
    out_of_memory_patterns = optional(list(string))
  })
  default  = {}
  nullable = false

  validation {
    condition     = var.retry.max_attempts >= 0 && floor(var.retry.max_attempts) == var.retry.max_attempts
    error_message = "retry.max_attempts is ${var.retry.max_attempts}: it must be a whole number, 0 or more. 0 means no limit."
  }

  validation {
    condition     = can(regex("^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$", var.retry.delay))
    error_message = "retry.delay is \"${var.retry.delay}\": it must be a duration with the units ms, s, m or h, such as \"30s\"."
  }

  validation {
    condition     = var.retry.out_of_memory >= 1 && floor(var.retry.out_of_memory) == var.retry.out_of_memory
    error_message = "retry.out_of_memory is ${var.retry.out_of_memory}: it must be a whole number, 1 or more."
  }
}

variable "on_failure" {
  description = "What happens to the other runs once `after` runs have failed: `stop` cancels all of them, `drain` only those that wait."
  type        = object({ after = number, then = optional(string) })
  default     = null

  validation {
    condition     = var.on_failure == null ? true : var.on_failure.after >= 1 && floor(var.on_failure.after) == var.on_failure.after
    error_message = "on_failure.after is ${try(var.on_failure.after, 0)}: it must be a whole number, 1 or more."
  }

  validation {
    condition     = contains(["stop", "drain"], try(coalesce(var.on_failure.then, "stop"), "stop"))
    error_message = "on_failure.then is \"${try(coalesce(var.on_failure.then, ""), "")}\": it must be \"stop\" or \"drain\"."
  }
}

variable "grace_period" {
  description = "Time that a run has to end after the stop signal, before it is killed: a duration such as `30s`."
  type        = string
  default     = "10s"
  nullable    = false

  validation {
    condition     = can(regex("^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$", var.grace_period))
    error_message = "grace_period is \"${var.grace_period}\": it must be a duration with the units ms, s, m or h, such as \"30s\"."
  }
}

variable "priority" {
  description = "Priority of the sweep: any whole number. Among sweeps with waiting runs, the one with the higher number starts its runs first."
  type        = number
  default     = null

  validation {
    condition     = var.priority == null ? true : floor(var.priority) == var.priority
    error_message = "priority is ${coalesce(var.priority, 0)}: it must be a whole number."
  }
}

variable "rerun" {
  description = "Which runs start again when something that all of them share changes: `changed` (all), `failed` (only those that did not succeed, also when `triggers` change) or `all` (all, also when `triggers` change). A run whose own config changes starts again in any case."
  type        = string
  default     = "changed"
  nullable    = false

  validation {
    condition     = contains(["changed", "failed", "all"], var.rerun)
    error_message = "rerun is \"${var.rerun}\": it must be \"changed\", \"failed\" or \"all\"."
  }
}

variable "triggers" {
  description = "Arbitrary strings by name. When one changes, runs start again according to `rerun`."
  type        = map(string)
  default     = null

  validation {
    condition     = var.triggers == null || var.rerun != "changed"
    error_message = "triggers is ${jsonencode(var.triggers)}, but with rerun = \"changed\" they restart nothing: set rerun to \"failed\" or \"all\"."
  }
}

variable "wait_for" {
  description = "What an apply waits for: `accepted` (at once) or `completed` (all runs have ended)."
  type        = string
  default     = "accepted"
  nullable    = false

  validation {
    condition     = contains(["accepted", "completed"], var.wait_for)
    error_message = "wait_for is \"${var.wait_for}\": it must be \"accepted\" or \"completed\"."
  }
}

variable "timeouts" {
  description = "Maximum duration of `create`, `update` and `delete`: how long an apply waits for the runs, and a destroy for their end."
  type        = object({ create = optional(string), update = optional(string), delete = optional(string) })
  default     = null

  validation {
    condition     = alltrue([for timeout in values(var.timeouts == null ? { create = null, update = null, delete = null } : var.timeouts) : timeout == null ? true : can(regex("^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$", timeout))])
    error_message = "timeouts is ${jsonencode(var.timeouts)}: each must be a duration with the units ms, s, m or h, such as \"2h\"."
  }
}

variable "objective" {
  description = "Value that runs are compared by: `pattern` finds it in their logs, and `goal` is `maximise` or `minimise`. For the module's own program it defaults to the final reward."
  type        = object({ pattern = string, goal = optional(string) })
  default     = null

  validation {
    condition     = var.objective == null ? true : strcontains(var.objective.pattern, "(")
    error_message = "objective.pattern is \"${try(var.objective.pattern, "")}\": it must be a regular expression with one capturing group, which matches the number, such as \"reward=([-0-9.]+)\"."
  }

  validation {
    condition     = contains(["maximise", "minimise"], try(coalesce(var.objective.goal, "maximise"), "maximise"))
    error_message = "objective.goal is \"${try(coalesce(var.objective.goal, ""), "")}\": it must be \"maximise\" or \"minimise\"."
  }
}

variable "results" {
  description = "Folder for results (`path`, as in `trainyard_sweep`; by default, each run has its own), and what a destroy does with them: `collect_to` is a folder on the machine that runs Terraform, for a tar archive of the results, and `on_destroy` is `keep` or `delete`."
  type        = object({ path = optional(string), on_destroy = optional(string, "keep"), collect_to = optional(string) })
  default     = {}
  nullable    = false

  validation {
    condition     = var.results.path == null ? true : startswith(var.results.path, "/") || var.cluster.engine != "swarm"
    error_message = "results.path is \"${coalesce(var.results.path, "-")}\": on a Swarm it must be an absolute path in the container, such as \"/results\"."
  }

  validation {
    condition     = var.results.collect_to == null ? true : trimspace(var.results.collect_to) != ""
    error_message = "results.collect_to is empty: it must be a folder on the machine that runs Terraform, such as \"results\". Omit it to collect nothing."
  }

  validation {
    condition     = contains(["keep", "delete"], var.results.on_destroy)
    error_message = "results.on_destroy is \"${var.results.on_destroy}\": it must be \"keep\" or \"delete\"."
  }
}

variable "tensorboard" {
  description = "TensorBoard for all results in `results.path`, as a separate group: `{}` uses the defaults. It has no password: `port` is open to anyone who can reach the members, and `published_port` to anyone who can reach its host in the Swarm."
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
    condition     = var.tensorboard == null || try(startswith(var.results.path, "/"), false)
    error_message = "tensorboard is set, but results.path is ${var.results.path == null ? "not set" : "\"${coalesce(var.results.path, "-")}\""}: TensorBoard needs one folder with the results of all runs. Set results.path to an absolute path, such as \"/srv/results\"."
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

variable "on_finish" {
  description = "Called with JSON once for each run that has ended: a `url`, by POST, or a `command` that runs beside the controller and reads its standard input. `timeout` limits the call. The URL is in plain text in the state and with the cluster."
  type        = object({ url = optional(string), command = optional(list(string)), timeout = optional(string) })
  default     = null

  validation {
    condition     = var.on_finish == null ? true : (var.on_finish.url == null) != (var.on_finish.command == null)
    error_message = "on_finish has both url and command, or neither: set exactly one of them." # whether url is set may be sensitive
  }

  validation {
    condition     = try(var.on_finish.url, null) == null ? true : can(regex("^https?://.+", var.on_finish.url))
    error_message = "on_finish.url (not shown, as it may contain a secret) must be an http:// or https:// URL, such as \"https://hooks.example.com/runs\"."
  }

  validation {
    condition     = try(var.on_finish.command, null) == null ? true : length(var.on_finish.command) > 0 && var.cluster.engine != "swarm"
    error_message = "on_finish.command is ${jsonencode(try(var.on_finish.command, null))}: it must name a program, and can't be used on a Swarm, whose controller has no programs to run. Use on_finish.url there."
  }

  validation {
    condition     = try(var.on_finish.timeout, null) == null ? true : can(regex("^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$", var.on_finish.timeout))
    error_message = "on_finish.timeout is \"${try(coalesce(var.on_finish.timeout), "")}\": it must be a duration with the units ms, s, m or h, such as \"10s\"."
  }
}
