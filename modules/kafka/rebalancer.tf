locals {
  # Bare hosts and processes may get the program from this machine; containers on a Swarm have it in their image.
  brought = try(var.rebalancer.files, null) != null
  image   = try(coalesce(var.rebalancer.image, var.image), null)
  folder  = one(trainyard_files.rebalancer[*].path)
  server  = "${var.name}-rebalancer-server-0"
  rebalancer = var.rebalancer == null ? null : local.swarm ? "http://${local.server}:${var.rebalancer.port}" : try(
    "http://${trainyard_group.rebalancer[0].members[local.server]}", null
  )

  rebalancer_mounts = concat(coalesce(var.mounts, []), !local.brought || local.image == null || local.engine != "systemd" ? [] : [{
    type = "bind", source = local.folder, target = local.folder, read_only = true, size_mib = null, driver = null
  }])

  load    = try(var.autoscale.load, null)
  metric  = local.load == null ? "cpu" : "load"
  per     = local.load == null ? "mean" : "total"
  learned = try(var.autoscale.algorithm.learned, null)

  # Features that a model takes besides the metric, and the source of each.
  observes = toset(try(local.learned.observes, []))
  sources = {
    cpu        = { agent = { measure = "cpu_percent" }, queue = null }
    load       = { agent = null, queue = { http = { url = try(local.load.url, ""), path = try(local.load.path, "") } } }
    p99        = { agent = null, queue = { http = { url = try(local.load.url, ""), path = "p99_ms" } } }
    lag_growth = { agent = null, queue = { http = { url = try(local.load.url, ""), path = "lag" } } }
    skew       = { agent = null, queue = { http = { url = "${coalesce(local.rebalancer, "http://rebalancer")}/status", path = "skew" } } }
  }
}

resource "trainyard_files" "rebalancer" {
  count = local.brought ? 1 : 0

  cluster = local.cluster
  name    = "${var.name}-rebalancer"
  source  = var.rebalancer.files

  # The rebalancer refers to the path: after a change of name, the new files are created before the old ones are
  # removed.
  lifecycle {
    create_before_destroy = true
  }
}

# Spreads partitions over added brokers, and moves them off brokers that are to be removed.
resource "trainyard_group" "rebalancer" {
  count = var.rebalancer == null ? 0 : 1

  cluster = local.cluster
  name    = "${var.name}-rebalancer"
  image   = local.image

  roles = {
    server = {
      replicas = 1
      port     = var.rebalancer.port
      command = [
        local.brought ? "${local.folder}/${var.rebalancer.program}" : var.rebalancer.program,
        "-bootstrap", join(",", local.bootstrap), "-listen", "{{ .Address }}", "-role", "broker",
        "-throttle-mib", tostring(var.rebalancer.throttle_mib),
      ]
      mounts    = length(local.rebalancer_mounts) == 0 ? null : local.rebalancer_mounts
      resources = var.rebalancer.resources
      placement = var.rebalancer.placement
      restart   = { condition = "always" }
    }
  }

  completion = { when = "never" }
  depends_on = [trainyard_group.this]
}

# One broker at a time: a new one has to get partitions before the next is added, and one has to be empty before it is
# removed.
resource "trainyard_autoscaling_policy" "this" {
  count = var.autoscale == null ? 0 : 1

  cluster  = local.cluster
  group    = trainyard_group.this.name
  role     = "broker"
  min      = var.autoscale.min
  max      = var.autoscale.max
  interval = var.autoscale.interval
  dry_run  = var.autoscale.dry_run

  metrics = merge(
    {
      (local.metric) = {
        source      = local.load == null ? local.sources.cpu : local.sources.load
        window      = var.autoscale.window
        ready_after = local.load == null ? "1m" : null # a JVM uses much CPU while it starts
        algorithm = {
          target = var.autoscale.algorithm.target == null ? null : {
            value = var.autoscale.algorithm.target.value
            per   = local.per
          }
          heat = var.autoscale.algorithm.heat
          risk = var.autoscale.algorithm.risk == null ? null : {
            percent  = var.autoscale.algorithm.risk.percent
            capacity = var.autoscale.algorithm.risk.capacity
            per      = local.per
          }
          learned = local.learned == null ? null : {
            model         = local.learned.model
            capacity      = local.learned.capacity
            per           = local.per
            latency_bound = contains(local.observes, "p99") ? local.learned.latency_bound_ms : null
            observes      = length(local.observes) == 0 ? null : { for feature in local.observes : feature => feature == "cpu" && local.load == null ? "processors" : feature }
          }
        }
      }
    },
    { for feature in local.observes : feature == "cpu" && local.load == null ? "processors" : feature => { source = local.sources[feature] } },
  )

  scale_out = { max_step = 1, cooldown = var.autoscale.cooldown }
  scale_in  = { max_step = 1, cooldown = var.autoscale.cooldown, stabilisation_window = var.autoscale.stabilisation_window }

  guards = {
    at_least = { http = { url = "${local.rebalancer}/status", path = "replication_factor" } }
  }

  hooks = {
    before_removal = { url = "${local.rebalancer}/leaving", timeout = try(var.rebalancer.timeout, null) }
    after_addition = { url = "${local.rebalancer}/joined", timeout = try(var.rebalancer.timeout, null) }
  }
}
