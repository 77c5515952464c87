variable "cluster" {
  description = "Cluster that Prometheus runs on, and whose agents it scrapes, as a whole: `trainyard_cluster.lab`. Its engine has to be `swarm`, or `systemd` with `agent.metrics_port`."
  type = object({
    name     = string
    engine   = optional(string)
    endpoint = optional(string)
    agent    = optional(object({ enabled = optional(bool), metrics_port = optional(number) }))
    hosts = optional(map(object({
      address           = optional(string)
      advertise_address = optional(string)
      role              = optional(string)
    })))
  })

  validation {
    condition     = try(var.cluster.agent.enabled, null) != false
    error_message = "cluster.agent.enabled is false: Prometheus scrapes the cluster's agents. Omit it in the cluster, or set it to true."
  }

  validation {
    condition     = try(contains(["swarm", "systemd"], var.cluster.engine), false)
    error_message = "cluster.engine is \"${try(coalesce(var.cluster.engine, "process"), "process")}\": it must be \"swarm\" or \"systemd\", because Prometheus runs as a container."
  }

  validation {
    condition     = var.cluster.engine != "systemd" || try(var.cluster.agent.metrics_port, null) != null
    error_message = "cluster.agent.metrics_port is not set: on bare hosts, agents serve metrics only at that port. Set it in the cluster, such as agent = { metrics_port = 9465 }."
  }

  validation {
    condition     = var.cluster.engine != "systemd" || try(length(var.cluster.hosts) > 0, false)
    error_message = "cluster.hosts is not set: on bare hosts, Prometheus needs the addresses of the hosts. Pass the cluster as a whole, trainyard_cluster.lab."
  }
}

variable "name" {
  description = "Name of the group. Prometheus is its member `<name>-prometheus-0`, and Grafana is `<name>-grafana-0`."
  type        = string
  default     = "monitoring"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z]([a-z0-9-]{0,46}[a-z0-9])?$", var.name))
    error_message = "name is \"${var.name}\": it must be a DNS label of at most 48 characters (lower-case letters, digits and hyphens, starting with a letter), so that members' names, such as <name>-prometheus-0, fit into 63 characters."
  }
}

variable "image" {
  description = "Container image of Prometheus. Its entrypoint has to be the program itself, as in `prom/prometheus`."
  type        = string
  default     = "prom/prometheus:v3.5.0"
  nullable    = false

  validation {
    condition     = trimspace(var.image) != ""
    error_message = "image is empty: it must be a container image of Prometheus, such as \"prom/prometheus:v3.5.0\"."
  }
}

variable "port" {
  description = "Port of Prometheus on the cluster's network; on bare hosts, at the address by which hosts reach each other."
  type        = number
  default     = 9090
  nullable    = false

  validation {
    condition     = var.port >= 1024 && var.port <= 65535 && floor(var.port) == var.port
    error_message = "port is ${var.port}: it must be a whole number from 1024 to 65535, because Prometheus does not run as root and can't listen on lower ports."
  }
}

variable "published_port" {
  description = "Port on its host at which Prometheus can be reached from outside the cluster, without a password, by anyone who can reach the host. If omitted, Prometheus is reachable only on the cluster's network. Not on bare hosts, where Prometheus listens at `port`."
  type        = number
  default     = null

  validation {
    condition     = var.published_port == null ? true : var.published_port >= 1 && var.published_port <= 65535 && floor(var.published_port) == var.published_port
    error_message = "published_port is ${coalesce(var.published_port, 0)}: it must be a whole number from 1 to 65535. Omit it to publish no port."
  }

  validation {
    condition     = var.published_port == null || var.cluster.engine == "swarm"
    error_message = "published_port is ${coalesce(var.published_port, 0)}, but only a Swarm publishes ports: omit it, and set port. On bare hosts, Prometheus listens at port on its host."
  }
}

variable "retention" {
  description = "How long samples are kept, in Prometheus's notation, such as `15d` or `12h`."
  type        = string
  default     = "15d"
  nullable    = false

  validation {
    condition     = can(regex("^([0-9]+(ms|s|m|h|d|w|y))+$", var.retention))
    error_message = "retention is \"${var.retention}\": it must be a duration in Prometheus's notation, whole numbers with the units ms, s, m, h, d, w or y, such as \"15d\"."
  }
}

variable "retention_size" {
  description = "Maximum size of the stored samples, such as `50GB`: beyond it, the oldest ones are dropped before `retention` ends. Defaults to no limit."
  type        = string
  default     = null

  validation {
    condition     = var.retention_size == null ? true : can(regex("^[0-9]+(B|KB|MB|GB|TB|PB|EB)$", var.retention_size))
    error_message = "retention_size is \"${coalesce(var.retention_size, "-")}\": it must be a whole number with one of the units B, KB, MB, GB, TB, PB or EB, such as \"50GB\"."
  }
}

variable "scrape_interval" {
  description = "Interval at which each agent is scraped, from `1s` to `1m`. Agents measure once a second."
  type        = string
  default     = "15s"
  nullable    = false

  validation {
    condition     = can(regex("^([1-9]|[1-5][0-9]|60)s$|^1m$", var.scrape_interval))
    error_message = "scrape_interval is \"${var.scrape_interval}\": it must be a whole number of seconds from 1s to 60s, or 1m, such as \"15s\". Agents measure once a second, so scraping more often shows nothing new; and after two minutes without a new measurement, an alert reports the host as silent."
  }
}

variable "scrape_configs" {
  description = "Additional entries of `scrape_configs` in `prometheus.yml`, as objects: for dcgm-exporter, cAdvisor or your own program. Not for secrets, as they are stored in plain text: use `secrets` with `password_file` and the like."
  type        = any
  default     = []
  nullable    = false

  validation {
    condition = can([for job in var.scrape_configs : regex("^.+$", job.job_name)])

    error_message = "scrape_configs has the job names ${jsonencode(try([for job in var.scrape_configs : try(job.job_name, null)], null))}: each entry must be an object with a job_name, by which Prometheus tells jobs apart."
  }

  validation {
    condition     = length(distinct(concat(["trainyard", "trainyard-controller"], [for job in var.scrape_configs : try(job.job_name, "")]))) == 2 + length(var.scrape_configs)
    error_message = "scrape_configs has the job names ${jsonencode(try([for job in var.scrape_configs : try(job.job_name, null)], null))}: each must be unique, and \"trainyard\" and \"trainyard-controller\" are taken by the agents and the controller. Prometheus doesn't start if two jobs have the same name."
  }
}

variable "secrets" {
  description = "Secrets for Prometheus, by name, as in a group's `container.secrets`: `version`, and `target` and `mode`, which defaults to `0444` because Prometheus does not run as root. It finds them in `/run/secrets/<name>`, such as for a `password_file`."
  type = map(object({
    version = string
    target  = optional(string)
    mode    = optional(string)
  }))
  default  = {}
  nullable = false

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
    error_message = "secrets has the target ${join(", ", [for secret in values(var.secrets) : "\"${coalesce(secret.target, "-")}\"" if secret.target == null ? false : !can(regex("^/+[^/]", secret.target))])}: it must be the absolute path of a file, such as \"/etc/prometheus/password\"."
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

variable "alerts" {
  description = "Whether Prometheus evaluates the module's alert rules: silent agents and controller, lost, unhealthy and idle GPUs, members that keep restarting, policies at their maximum or unable to act."
  type        = bool
  default     = true
  nullable    = false
}

variable "rule_files" {
  description = "Additional rule files of Prometheus, by name: `{ mine = file(\"mine.yml\") }`."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for name in keys(var.rule_files) : can(regex("^[a-z0-9_-]{1,40}$", name)) && name != "trainyard"])
    error_message = "rule_files has ${join(", ", [for name in keys(var.rule_files) : "\"${name}\"" if !can(regex("^[a-z0-9_-]{1,40}$", name)) || name == "trainyard"])}: names consist of 1 to 40 lower-case letters, digits, - and _, without \".yml\"; \"trainyard\" is the module's own."
  }

  validation {
    condition     = alltrue([for content in values(var.rule_files) : can(yamldecode(content).groups)])
    error_message = "rule_files has ${join(", ", [for name, content in var.rule_files : "\"${name}\"" if !can(yamldecode(content).groups)])}: each file must be YAML with groups of rules, in Prometheus's format."
  }
}

variable "alertmanagers" {
  description = "Alertmanagers that alerts are sent to, as `host:port`. If omitted, alerts are only shown by Prometheus and Grafana."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for at in var.alertmanagers : can(regex("^(\\[[0-9a-fA-F:]+\\]|[^][:/@ ]+):[0-9]{1,5}$", at))])
    error_message = "alertmanagers is ${jsonencode(var.alertmanagers)}: each must be host:port, such as \"10.0.0.9:9093\", without http://."
  }
}

variable "placement" {
  description = "Hosts that Prometheus and Grafana may run on, by name or label, as in a role's `placement`. Their data stays on the host: name one host if the data has to be kept."
  type = object({
    hosts  = optional(list(string))
    labels = optional(map(string))
  })
  default = null
}

variable "resources" {
  description = "Resource requests and limits of Prometheus, as in a role's `resources`."
  type = object({
    cpus       = optional(number)
    memory_mib = optional(number)
  })
  default = null
}

variable "grafana" {
  description = "Adds Grafana, with dashboards of the cluster, its GPUs and its groups: `{}` uses the defaults. If omitted, there is no Grafana."
  type = object({
    image            = optional(string, "grafana/grafana:12.0.2")
    port             = optional(number, 3000)
    published_port   = optional(number)
    password_version = optional(string, "1")
  })
  default = null

  validation {
    condition     = var.grafana == null ? true : var.grafana.port >= 1024 && var.grafana.port <= 65535 && floor(var.grafana.port) == var.grafana.port
    error_message = "grafana.port is ${try(var.grafana.port, 0)}: it must be a whole number from 1024 to 65535, because Grafana does not run as root and can't listen on lower ports."
  }

  validation {
    condition     = try(var.grafana.published_port, null) == null ? true : var.grafana.published_port >= 1 && var.grafana.published_port <= 65535 && floor(var.grafana.published_port) == var.grafana.published_port
    error_message = "grafana.published_port is ${try(coalesce(var.grafana.published_port, 0), 0)}: it must be a whole number from 1 to 65535. Omit it to publish no port."
  }

  validation {
    condition     = try(var.grafana.published_port, null) == null || var.cluster.engine == "swarm"
    error_message = "grafana.published_port is ${try(coalesce(var.grafana.published_port, 0), 0)}, but only a Swarm publishes ports: omit it, and set grafana.port. On bare hosts, Grafana listens at grafana.port on its host."
  }
}

variable "grafana_password" {
  description = "Password of Grafana's user `admin`. Required with `grafana`. It is neither in the plan nor in the state. A new password takes effect only if `grafana.password_version` changes as well, and only before Grafana's first start: after that, the password is in Grafana's own database."
  type        = string
  default     = null
  sensitive   = true
  ephemeral   = true

  validation {
    condition     = var.grafana == null || var.grafana_password != null
    error_message = "grafana is set, but grafana_password is not: set it. Without it, anyone could log in as administrator with Grafana's default password."
  }
}
