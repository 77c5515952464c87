variable "cluster" {
  description = "Cluster that Kafka runs on, passed as a whole: `trainyard_cluster.lab`."
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
  description = "Name of the group of brokers, whose members are `<name>-broker-0` and so on. Controllers are `<name>-controllers-controller-0` and so on; the rebalancer is `<name>-rebalancer-server-0`."
  type        = string
  default     = "kafka"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z]([a-z0-9-]{0,36}[a-z0-9])?$", var.name))
    error_message = "name is \"${var.name}\": it must be a DNS label of at most 38 characters (lower-case letters, digits and hyphens, starting with a letter), so that members' names, such as <name>-controllers-controller-0, fit into 63 characters."
  }
}

variable "image" {
  description = "Container image with Kafka 4.0 or later, and Java 17 or later; required on `swarm`. On bare hosts, it makes members run as containers; on `process`, it has no effect. `apache/kafka:4.3.1` works; the module's `Dockerfile` builds one that also has the rebalancer."
  type        = string
  default     = null

  validation {
    condition     = var.image == null ? var.cluster.engine != "swarm" : trimspace(var.image) != ""
    error_message = "image is ${var.image == null ? "not set" : "empty"}: on a Swarm, members are containers, so set it, for example to \"apache/kafka:4.3.1\". On other engines, omit it to run members without containers."
  }
}

variable "java" {
  description = "Java 17 or later: a name on `PATH`, or an absolute path."
  type        = string
  default     = "java"
  nullable    = false

  validation {
    condition     = can(regex("^(/[A-Za-z0-9._/+-]*)?[A-Za-z0-9._+-]+$", var.java))
    error_message = "java is \"${var.java}\": it must be the name of a program, such as \"java\", or an absolute path of letters, digits and ._/+-, such as \"/usr/lib/jvm/java-17/bin/java\"."
  }
}

variable "libs" {
  description = "Folder with Kafka's jars, on the hosts or in the image: `libs` of the download from kafka.apache.org."
  type        = string
  default     = "/opt/kafka/libs"
  nullable    = false

  validation {
    condition     = can(regex("^/[A-Za-z0-9._/+-]+$", var.libs))
    error_message = "libs is \"${var.libs}\": it must be an absolute path of letters, digits and ._/+-, such as \"/opt/kafka/libs\"."
  }
}

variable "env" {
  description = "Additional environment variables of controllers and brokers, by name, such as `JDK_JAVA_OPTIONS`."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for name in keys(var.env) : can(regex("^[A-Za-z_][A-Za-z0-9_]*$", name)) && !startswith(name, "TRAINYARD_")])
    error_message = "env has ${join(", ", [for name in keys(var.env) : "\"${name}\"" if !can(regex("^[A-Za-z_][A-Za-z0-9_]*$", name)) || startswith(name, "TRAINYARD_")])}: names consist of letters, digits and underscores, and don't start with a digit; the prefix TRAINYARD_ is reserved."
  }
}

variable "secrets" {
  description = "Secrets for controllers and brokers, by name, as in a group's `container.secrets`: `version`, and `target` and `mode`. Containers find them in `/run/secrets/<name>`, other members on `systemd` in `$CREDENTIALS_DIRECTORY/<name>`, and both in `secrets/<name>` in their working directory. Not on `process`."
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
    error_message = "secrets has the target ${join(", ", [for secret in values(var.secrets) : "\"${coalesce(secret.target, "-")}\"" if secret.target == null ? false : !can(regex("^/+[^/]", secret.target))])}: it must be the absolute path of a file, such as \"/etc/kafka/password\"."
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
  description = "Storage for all members, as in `trainyard_group`, such as for keys. Their data has its own storage: see `data_dir`."
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
  description = "Kafka properties for controllers and brokers, by name. They override those that the module sets. Values can be templates, such as `{{ .Host }}`. Not for secrets, as they are stored in plain text: use `secrets`."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for name, value in var.conf : can(regex("^[A-Za-z0-9._-]+$", name)) && !can(regex("[\\n\\r]", value))])
    error_message = "conf has ${join(", ", [for name, value in var.conf : "\"${name}\"" if !can(regex("^[A-Za-z0-9._-]+$", name)) || can(regex("[\\n\\r]", value))])}: names consist of letters, digits and ._-, such as \"log.retention.hours\", and values are a single line."
  }

  validation {
    condition     = alltrue([for name in keys(var.conf) : !contains(["process.roles", "node.id", "log.dirs", "controller.quorum.voters", "listeners", "advertised.listeners"], name)])
    error_message = "conf has ${join(", ", [for name in keys(var.conf) : "\"${name}\"" if contains(["process.roles", "node.id", "log.dirs", "controller.quorum.voters", "listeners", "advertised.listeners"], name)])}: the module sets this itself, so remove it. To change the listeners of brokers, use broker.conf."
  }
}

variable "cluster_id" {
  description = "Kafka's cluster ID, which is written to each member's data if that is new. Defaults to an ID derived from the names of cluster and group, so that it stays the same."
  type        = string
  default     = null

  validation {
    condition     = var.cluster_id == null ? true : can(regex("^[A-Za-z0-9_][A-Za-z0-9_-]{20}[AQgw]$", var.cluster_id))
    error_message = "cluster_id is \"${coalesce(var.cluster_id, "-")}\": it must be 16 bytes in URL-safe base64 (22 characters, the first of which is not a hyphen), as kafka-storage.sh random-uuid prints."
  }
}

variable "replication_factor" {
  description = "Number of replicas of Kafka's internal topics, and of other topics that don't set their own. With several, all but one have to acknowledge each record (`min.insync.replicas`). Defaults to 3, or to the number of brokers if there are fewer."
  type        = number
  default     = null

  validation {
    condition     = var.replication_factor == null ? true : var.replication_factor >= 1 && floor(var.replication_factor) == var.replication_factor
    error_message = "replication_factor is ${coalesce(var.replication_factor, 0)}: it must be a whole number, 1 or more. Omit it for the default."
  }

  validation {
    condition     = var.replication_factor == null ? true : var.replication_factor <= try(var.autoscale.min, coalesce(var.broker.replicas, 3))
    error_message = "replication_factor is ${coalesce(var.replication_factor, 0)}, more than the minimum number of brokers, ${try(var.autoscale.min, coalesce(var.broker.replicas, 3))}: each replica needs its own broker. Lower it, or raise broker.replicas or autoscale.min."
  }
}

variable "controller" {
  description = "The controllers, which keep Kafka's metadata: `replicas` (1, or 3 or 5 to tolerate the loss of one or two), `port`, `heap_mib`, `data_dir`, `conf`, and, as in a role of `trainyard_group`, `env`, `resources`, `placement` and `mounts`. `env` and `mounts` are added to the module's. The number of controllers can't be changed later."
  type = object({
    replicas = optional(number, 1)
    port     = optional(number, 9192)
    heap_mib = optional(number, 512)
    data_dir = optional(string)
    conf     = optional(map(string), {})
    env      = optional(map(string), {})
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
    condition     = contains([1, 3, 5], var.controller.replicas)
    error_message = "controller.replicas is ${var.controller.replicas}: it must be 1, 3 or 5, because more than half of the controllers have to agree."
  }

  validation {
    condition     = var.controller.port >= 1 && var.controller.port <= 65535 && floor(var.controller.port) == var.controller.port
    error_message = "controller.port is ${var.controller.port}: it must be a whole number from 1 to 65535."
  }

  validation {
    condition     = var.controller.heap_mib >= 64 && floor(var.controller.heap_mib) == var.controller.heap_mib
    error_message = "controller.heap_mib is ${var.controller.heap_mib}: it must be a whole number, 64 or more."
  }

  validation {
    condition     = coalesce(try(var.controller.resources.limits.memory_mib, null), try(var.controller.resources.memory_mib, null), 0) == 0 ? true : coalesce(try(var.controller.resources.limits.memory_mib, null), try(var.controller.resources.memory_mib, null), 0) > var.controller.heap_mib
    error_message = "controller.heap_mib is ${var.controller.heap_mib}, but controller.resources allows only ${coalesce(try(var.controller.resources.limits.memory_mib, null), try(var.controller.resources.memory_mib, null), 0)} MiB: a JVM also needs memory outside its heap, at least half as much again. Lower heap_mib, or raise memory_mib."
  }

  validation {
    condition     = var.controller.data_dir == null ? true : can(regex("^/[A-Za-z0-9._/+-]+$", var.controller.data_dir))
    error_message = "controller.data_dir is \"${coalesce(var.controller.data_dir, "-")}\": it must be an absolute path of letters, digits and ._/+-, such as \"/mnt/nvme/kafka\"."
  }

  validation {
    condition     = var.controller.data_dir == null || alltrue([for mount in coalesce(var.controller.mounts, []) : mount.target != "/var/lib/kafka"])
    error_message = "controller.data_dir is \"${coalesce(var.controller.data_dir, "-")}\", and controller.mounts has the target \"/var/lib/kafka\": both say where the data is stored. Omit one of them."
  }

  validation {
    condition     = alltrue([for name, value in var.controller.conf : can(regex("^[A-Za-z0-9._-]+$", name)) && !can(regex("[\\n\\r]", value))])
    error_message = "controller.conf has ${join(", ", [for name, value in var.controller.conf : "\"${name}\"" if !can(regex("^[A-Za-z0-9._-]+$", name)) || can(regex("[\\n\\r]", value))])}: names consist of letters, digits and ._-, such as \"log.retention.hours\", and values are a single line."
  }

  validation {
    condition     = alltrue([for name in keys(var.controller.conf) : !contains(["process.roles", "node.id", "log.dirs", "controller.quorum.voters", "listeners", "advertised.listeners"], name)])
    error_message = "controller.conf has ${join(", ", [for name in keys(var.controller.conf) : "\"${name}\"" if contains(["process.roles", "node.id", "log.dirs", "controller.quorum.voters", "listeners", "advertised.listeners"], name)])}: the module sets this itself, so remove it. To change the listeners of brokers, use broker.conf."
  }

  validation {
    condition     = alltrue([for name in keys(var.controller.env) : can(regex("^[A-Za-z_][A-Za-z0-9_]*$", name)) && !startswith(name, "TRAINYARD_")])
    error_message = "controller.env has ${join(", ", [for name in keys(var.controller.env) : "\"${name}\"" if !can(regex("^[A-Za-z_][A-Za-z0-9_]*$", name)) || startswith(name, "TRAINYARD_")])}: names consist of letters, digits and underscores, and don't start with a digit; the prefix TRAINYARD_ is reserved."
  }

  validation {
    condition     = alltrue([for mount in coalesce(var.controller.mounts, []) : startswith(mount.target, "/")])
    error_message = "controller.mounts has the target ${join(", ", [for mount in coalesce(var.controller.mounts, []) : "\"${mount.target}\"" if !startswith(mount.target, "/")])}: it must be an absolute path."
  }

  validation {
    condition     = alltrue([for mount in coalesce(var.controller.mounts, []) : contains(["bind", "volume", "tmpfs"], coalesce(mount.type, "bind"))])
    error_message = "controller.mounts has the type ${join(", ", [for mount in coalesce(var.controller.mounts, []) : "\"${coalesce(mount.type, "bind")}\"" if !contains(["bind", "volume", "tmpfs"], coalesce(mount.type, "bind"))])}: it must be \"bind\", \"volume\" or \"tmpfs\"."
  }
}

variable "broker" {
  description = "The brokers: `replicas` (3 by default; omit it with `autoscale`), `port`, `heap_mib`, `data_dir` (folder on each host, with a subfolder for each member, named after it; by default a volume of the host's Docker Engine with the group's name, or without containers the member's own working directory), `grace_period`, `update_delay` between two brokers that a change restarts, and, as for `controller`, `conf`, `env`, `resources`, `placement` and `mounts`."
  type = object({
    replicas     = optional(number)
    port         = optional(number, 9092)
    heap_mib     = optional(number, 1024)
    data_dir     = optional(string)
    grace_period = optional(string, "2m")
    update_delay = optional(string, "30s")
    conf         = optional(map(string), {})
    env          = optional(map(string), {})
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
    condition     = var.broker.replicas == null ? true : var.broker.replicas >= 1 && var.broker.replicas <= 1000 && floor(var.broker.replicas) == var.broker.replicas
    error_message = "broker.replicas is ${coalesce(var.broker.replicas, 0)}: it must be a whole number from 1 to 1000."
  }

  validation {
    condition     = var.broker.port >= 1 && var.broker.port <= 65535 && floor(var.broker.port) == var.broker.port
    error_message = "broker.port is ${var.broker.port}: it must be a whole number from 1 to 65535."
  }

  validation {
    condition     = var.broker.heap_mib >= 64 && floor(var.broker.heap_mib) == var.broker.heap_mib
    error_message = "broker.heap_mib is ${var.broker.heap_mib}: it must be a whole number, 64 or more."
  }

  validation {
    condition     = coalesce(try(var.broker.resources.limits.memory_mib, null), try(var.broker.resources.memory_mib, null), 0) == 0 ? true : coalesce(try(var.broker.resources.limits.memory_mib, null), try(var.broker.resources.memory_mib, null), 0) > var.broker.heap_mib
    error_message = "broker.heap_mib is ${var.broker.heap_mib}, but broker.resources allows only ${coalesce(try(var.broker.resources.limits.memory_mib, null), try(var.broker.resources.memory_mib, null), 0)} MiB: a JVM also needs memory outside its heap, at least half as much again. Lower heap_mib, or raise memory_mib."
  }

  validation {
    condition     = var.broker.data_dir == null ? true : can(regex("^/[A-Za-z0-9._/+-]+$", var.broker.data_dir))
    error_message = "broker.data_dir is \"${coalesce(var.broker.data_dir, "-")}\": it must be an absolute path of letters, digits and ._/+-, such as \"/mnt/nvme/kafka\"."
  }

  validation {
    condition     = var.broker.data_dir == null || alltrue([for mount in coalesce(var.broker.mounts, []) : mount.target != "/var/lib/kafka"])
    error_message = "broker.data_dir is \"${coalesce(var.broker.data_dir, "-")}\", and broker.mounts has the target \"/var/lib/kafka\": both say where the data is stored. Omit one of them."
  }

  validation {
    condition     = alltrue([for duration in [var.broker.grace_period, var.broker.update_delay] : can(regex("^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$", duration))])
    error_message = "broker.grace_period is \"${var.broker.grace_period}\", and broker.update_delay is \"${var.broker.update_delay}\": each must be a duration with the units ms, s, m or h, such as \"2m\"."
  }

  validation {
    condition     = alltrue([for name, value in var.broker.conf : can(regex("^[A-Za-z0-9._-]+$", name)) && !can(regex("[\\n\\r]", value))])
    error_message = "broker.conf has ${join(", ", [for name, value in var.broker.conf : "\"${name}\"" if !can(regex("^[A-Za-z0-9._-]+$", name)) || can(regex("[\\n\\r]", value))])}: names consist of letters, digits and ._-, such as \"log.retention.hours\", and values are a single line."
  }

  validation {
    condition     = alltrue([for name in keys(var.broker.conf) : !contains(["process.roles", "node.id", "log.dirs", "controller.quorum.voters"], name)])
    error_message = "broker.conf has ${join(", ", [for name in keys(var.broker.conf) : "\"${name}\"" if contains(["process.roles", "node.id", "log.dirs", "controller.quorum.voters"], name)])}: the module sets this itself, to tell members apart, so remove it."
  }

  validation {
    condition     = alltrue([for name in keys(var.broker.env) : can(regex("^[A-Za-z_][A-Za-z0-9_]*$", name)) && !startswith(name, "TRAINYARD_")])
    error_message = "broker.env has ${join(", ", [for name in keys(var.broker.env) : "\"${name}\"" if !can(regex("^[A-Za-z_][A-Za-z0-9_]*$", name)) || startswith(name, "TRAINYARD_")])}: names consist of letters, digits and underscores, and don't start with a digit; the prefix TRAINYARD_ is reserved."
  }

  validation {
    condition     = alltrue([for mount in coalesce(var.broker.mounts, []) : startswith(mount.target, "/")])
    error_message = "broker.mounts has the target ${join(", ", [for mount in coalesce(var.broker.mounts, []) : "\"${mount.target}\"" if !startswith(mount.target, "/")])}: it must be an absolute path."
  }

  validation {
    condition     = alltrue([for mount in coalesce(var.broker.mounts, []) : contains(["bind", "volume", "tmpfs"], coalesce(mount.type, "bind"))])
    error_message = "broker.mounts has the type ${join(", ", [for mount in coalesce(var.broker.mounts, []) : "\"${coalesce(mount.type, "bind")}\"" if !contains(["bind", "volume", "tmpfs"], coalesce(mount.type, "bind"))])}: it must be \"bind\", \"volume\" or \"tmpfs\"."
  }
}

variable "rebalancer" {
  description = "The module's rebalancer, in a separate group. It spreads partitions over added brokers, and moves them off brokers that are to be removed: `program` (its name on `PATH` or its absolute path, on the hosts or in `image`; or its name in `files`, a folder on this machine that is copied to bare hosts), `image` with the program (by default, `image` of the brokers), `port`, `throttle_mib` (maximum MiB/s that a broker moves; 0 sets no limit), `timeout` of one change, `resources`, `placement`. Required by `autoscale`."
  type = object({
    program      = optional(string, "rebalancer")
    files        = optional(string)
    image        = optional(string)
    port         = optional(number, 9292)
    throttle_mib = optional(number, 50)
    timeout      = optional(string, "6h")
    resources    = optional(object({ cpus = optional(number), memory_mib = optional(number) }))
    placement    = optional(object({ hosts = optional(list(string)), labels = optional(map(string)) }))
  })
  default = null

  validation {
    condition     = var.rebalancer == null ? true : can(regex("^(/.*)?[^/\\s]+$", var.rebalancer.program)) && (var.rebalancer.files == null || !startswith(var.rebalancer.program, "/"))
    error_message = "rebalancer.program is \"${try(var.rebalancer.program, "")}\": it must be the name of a program, such as \"rebalancer\", or, unless rebalancer.files is set, an absolute path, such as \"/opt/kafka/bin/rebalancer\"."
  }

  validation {
    condition     = try(var.rebalancer.files, null) == null || var.cluster.engine != "swarm"
    error_message = "rebalancer.files is \"${try(coalesce(var.rebalancer.files, "-"), "-")}\", but containers on a Swarm have the program in their image: omit rebalancer.files."
  }

  validation {
    condition     = try(var.rebalancer.image, null) == null ? true : trimspace(var.rebalancer.image) != ""
    error_message = "rebalancer.image is empty: it must be the name of an image. Omit it to use image."
  }

  validation {
    condition     = var.rebalancer == null ? true : var.rebalancer.port >= 1 && var.rebalancer.port <= 65535 && floor(var.rebalancer.port) == var.rebalancer.port
    error_message = "rebalancer.port is ${try(var.rebalancer.port, 0)}: it must be a whole number from 1 to 65535."
  }

  validation {
    condition     = var.rebalancer == null ? true : var.rebalancer.throttle_mib >= 0 && floor(var.rebalancer.throttle_mib) == var.rebalancer.throttle_mib
    error_message = "rebalancer.throttle_mib is ${try(var.rebalancer.throttle_mib, 0)}: it must be a whole number, 0 or more."
  }

  validation {
    condition     = var.rebalancer == null ? true : can(regex("^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$", var.rebalancer.timeout))
    error_message = "rebalancer.timeout is \"${try(var.rebalancer.timeout, "")}\": it must be a duration with the units ms, s, m or h, such as \"6h\"."
  }
}

variable "autoscale" {
  description = "Lets the number of brokers follow their CPU usage, in percent of `broker.resources.cpus`, or with `load` a number from a JSON endpoint, such as records per second of all brokers: from `min` to `max`, one broker at a time. `algorithm` is one of `target`, `heat`, `risk` and `learned`, as in `trainyard_autoscaling_policy`; with `load`, `target.value`, `risk.capacity` and `learned.capacity` are what one broker carries. `learned.observes` lists which of `cpu`, `skew`, `p99` and `lag_growth` the model takes; the last two are read from the same endpoint, as `p99_ms` and `lag`, and `learned.latency_bound_ms` is the allowed latency. `interval` (10s) is the time between two decisions, `window` (1m) what the metric is averaged over, `cooldown` (10m) the minimum time between two changes, and `stabilisation_window` (30m) how long fewer brokers must suffice before one is removed. The policy never goes below the largest replication factor of the topics, as reported by the rebalancer. With `dry_run`, it only reports what it would do."
  type = object({
    min      = number
    max      = number
    interval = optional(string, "10s")
    window   = optional(string, "1m")
    dry_run  = optional(bool, false)
    load     = optional(object({ url = string, path = optional(string, "load") }))
    algorithm = optional(object({
      target = optional(object({ value = number }))
      heat   = optional(object({ lower = number, upper = number, target = number, recurrence = optional(number, 3) }))
      risk   = optional(object({ percent = number, capacity = optional(number) }))
      learned = optional(object({
        model            = string
        capacity         = optional(number)
        observes         = optional(list(string), [])
        latency_bound_ms = optional(number)
      }))
    }), { target = { value = 60 } })
    cooldown             = optional(string, "10m")
    stabilisation_window = optional(string, "30m")
  })
  default = null

  validation {
    condition     = var.autoscale == null ? true : var.autoscale.min >= 1 && floor(var.autoscale.min) == var.autoscale.min
    error_message = "autoscale.min is ${try(var.autoscale.min, 0)}: it must be a whole number, 1 or more."
  }

  validation {
    condition     = var.autoscale == null ? true : var.autoscale.max >= var.autoscale.min && var.autoscale.max <= 1000 && floor(var.autoscale.max) == var.autoscale.max
    error_message = "autoscale.max is ${try(var.autoscale.max, 0)}: it must be a whole number from autoscale.min (${try(var.autoscale.min, 0)}) to 1000."
  }

  validation {
    condition     = var.autoscale == null || var.rebalancer != null
    error_message = "autoscale is set, but rebalancer is not: without it, added brokers get no partitions, and brokers with partitions can't be removed. Set rebalancer, at least to {}."
  }

  validation {
    condition     = var.autoscale == null || var.broker.replicas == null
    error_message = "broker.replicas is ${coalesce(var.broker.replicas, 0)}, but autoscale is set: omit broker.replicas, because the policy sets the number of brokers, from autoscale.min to autoscale.max."
  }

  validation {
    condition     = var.autoscale == null || try(var.autoscale.load, null) != null || try(var.broker.resources.cpus, null) != null
    error_message = "autoscale is set, but neither autoscale.load nor broker.resources.cpus is: CPU usage is measured in percent of the CPUs that brokers request. Set one of them."
  }

  validation {
    condition     = try(var.autoscale.load, null) == null ? true : can(regex("^https?://[^\\s/]+", var.autoscale.load.url))
    error_message = "autoscale.load.url is \"${try(var.autoscale.load.url, "")}\": it must be an http:// or https:// URL."
  }

  validation {
    condition     = var.autoscale == null ? true : length(compact([for name, algorithm in var.autoscale.algorithm : algorithm == null ? "" : name])) == 1
    error_message = "autoscale.algorithm has ${length(try(compact([for name, algorithm in var.autoscale.algorithm : algorithm == null ? "" : name]), []))} of target, heat, risk and learned: set exactly one."
  }

  validation {
    condition     = try(var.autoscale.algorithm.heat, null) == null || try(var.autoscale.load, null) == null
    error_message = "autoscale.algorithm.heat and autoscale.load are both set: heat follows the CPU usage of each broker. For a load of all brokers together, use target, risk or learned."
  }

  validation {
    condition     = try(var.autoscale.algorithm.target, null) == null ? true : var.autoscale.algorithm.target.value > 0
    error_message = "autoscale.algorithm.target.value is ${try(var.autoscale.algorithm.target.value, 0)}: it must be above 0."
  }

  validation {
    condition     = try(var.autoscale.algorithm.heat, null) == null ? true : var.autoscale.algorithm.heat.lower >= 0 && var.autoscale.algorithm.heat.lower < var.autoscale.algorithm.heat.upper && var.autoscale.algorithm.heat.target > 0 && var.autoscale.algorithm.heat.recurrence >= 1
    error_message = "autoscale.algorithm.heat has lower ${try(var.autoscale.algorithm.heat.lower, 0)}, upper ${try(var.autoscale.algorithm.heat.upper, 0)}, target ${try(var.autoscale.algorithm.heat.target, 0)}, recurrence ${try(var.autoscale.algorithm.heat.recurrence, 0)}: lower must be at least 0 and below upper, target above 0, and recurrence at least 1."
  }

  validation {
    condition     = try(var.autoscale.algorithm.risk, null) == null ? true : var.autoscale.algorithm.risk.percent >= 0.1 && var.autoscale.algorithm.risk.percent <= 50 && (var.autoscale.algorithm.risk.capacity == null ? var.autoscale.load == null : var.autoscale.algorithm.risk.capacity > 0)
    error_message = "autoscale.algorithm.risk has percent ${try(var.autoscale.algorithm.risk.percent, 0)}, capacity ${try(coalesce(var.autoscale.algorithm.risk.capacity, 0), 0)}: percent must be from 0.1 to 50, and capacity above 0. With autoscale.load, capacity is required."
  }

  validation {
    condition     = try(var.autoscale.algorithm.learned, null) == null ? true : var.autoscale.algorithm.learned.capacity == null ? var.autoscale.load == null : var.autoscale.algorithm.learned.capacity > 0
    error_message = "autoscale.algorithm.learned.capacity is ${try(var.autoscale.algorithm.learned.capacity, null) == null ? "not set" : try(var.autoscale.algorithm.learned.capacity, 0)}: it must be above 0. With autoscale.load it is required: the load that one broker carries."
  }

  validation {
    condition     = try(var.autoscale.algorithm.learned, null) == null ? true : length(setsubtract(var.autoscale.algorithm.learned.observes, var.autoscale.load == null ? ["cpu", "skew"] : ["cpu", "skew", "p99", "lag_growth"])) == 0
    error_message = "autoscale.algorithm.learned.observes is ${jsonencode(try(var.autoscale.algorithm.learned.observes, []))}: it may contain \"cpu\" and \"skew\", and, with autoscale.load, \"p99\" and \"lag_growth\"."
  }

  validation {
    condition     = try(var.autoscale.algorithm.learned, null) == null ? true : !contains(var.autoscale.algorithm.learned.observes, "p99") || try(var.autoscale.algorithm.learned.latency_bound_ms > 0, false)
    error_message = "autoscale.algorithm.learned.latency_bound_ms is ${try(var.autoscale.algorithm.learned.latency_bound_ms, null) == null ? "not set" : try(var.autoscale.algorithm.learned.latency_bound_ms, 0)}: a model that observes p99 needs the allowed latency, in milliseconds, above 0."
  }

  validation {
    condition     = alltrue([for duration in compact([try(var.autoscale.interval, null), try(var.autoscale.window, null), try(var.autoscale.cooldown, null), try(var.autoscale.stabilisation_window, null)]) : can(regex("^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$", duration))])
    error_message = "autoscale.interval is \"${try(var.autoscale.interval, "")}\", autoscale.window \"${try(var.autoscale.window, "")}\", autoscale.cooldown \"${try(var.autoscale.cooldown, "")}\", autoscale.stabilisation_window \"${try(var.autoscale.stabilisation_window, "")}\": each must be a duration with the units ms, s, m or h, such as \"10m\"."
  }
}

variable "priority" {
  description = "Priority over other groups: roles under an autoscaling policy in groups of lower priority give way to them."
  type        = number
  default     = null

  validation {
    condition     = var.priority == null ? true : floor(var.priority) == var.priority
    error_message = "priority is ${coalesce(var.priority, 0)}: it must be a whole number."
  }
}

variable "triggers" {
  description = "Arbitrary strings by arbitrary names. Changing one restarts the controllers and the brokers."
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
