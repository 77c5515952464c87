locals {
  cluster = { name = var.cluster.name, engine = var.cluster.engine, endpoint = var.cluster.endpoint }
  engine  = coalesce(var.cluster.engine, "process")
  swarm   = local.engine == "swarm"

  # Containers keep their data in a volume or folder of their host, other members in a folder: each under its own name,
  # as several members may share it. Without a data_dir, members without a container use their own working directory.
  container = local.engine != "process" && var.image != null
  target    = "/var/lib/kafka"
  storage = {
    for role, own in { controller = var.controller, broker = var.broker } : role => {
      folder = !local.container && own.data_dir == null ? "\"$PWD\"" : (
        "${local.container ? local.target : trimsuffix(own.data_dir, "/")}/$TRAINYARD_MEMBER"
      )

      mounts = flatten([
        coalesce(var.mounts, []), coalesce(own.mounts, []),
        !local.container || contains(coalesce(own.mounts, [])[*].target, local.target) ? [] : [{
          type      = own.data_dir == null ? "volume" : "bind"
          source    = coalesce(own.data_dir, var.name)
          target    = local.target
          read_only = null
          size_mib  = null
          driver    = null
        }],
      ])
    }
  }

  # Kafka's cluster IDs are base64 of 16 bytes, so the last bits are 0, and must not start with a hyphen.
  digest     = replace(replace(base64sha256("${var.cluster.name}/${var.name}"), "+", "-"), "/", "_")
  cluster_id = coalesce(var.cluster_id, "k${substr(local.digest, 0, 20)}A")

  # On a Swarm, a member's name is its address, even while the member is missing. With a policy, these are the brokers
  # that it always keeps; elsewhere only the first one, as the others have no address until the policy asks for them.
  brokers = var.autoscale == null ? coalesce(var.broker.replicas, 3) : var.autoscale.min
  controllers = [
    for name in [for i in range(var.controller.replicas) : "${var.name}-controllers-controller-${i}"] :
    local.swarm ? "${name}:${var.controller.port}" : try(trainyard_group.controllers.members[name], "${name}:${var.controller.port}")
  ]
  bootstrap = compact([
    for name in [for i in range(local.swarm || var.autoscale == null ? local.brokers : 1) : "${var.name}-broker-${i}"] :
    local.swarm ? "${name}:${var.broker.port}" : try(trainyard_group.this.members[name], null)
  ])

  # Read by both: controllers create topics, and brokers the internal ones.
  copies = coalesce(var.replication_factor, min(3, local.brokers))
  conf = merge(
    {
      "controller.listener.names"                        = "CONTROLLER"
      "listener.security.protocol.map"                   = "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT"
      "default.replication.factor"                       = tostring(local.copies)
      "min.insync.replicas"                              = tostring(max(1, local.copies - 1))
      "offsets.topic.replication.factor"                 = tostring(local.copies)
      "transaction.state.log.replication.factor"         = tostring(local.copies)
      "transaction.state.log.min.isr"                    = tostring(max(1, local.copies - 1))
      "share.coordinator.state.topic.replication.factor" = tostring(local.copies)
      "share.coordinator.state.topic.min.isr"            = tostring(max(1, local.copies - 1))
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

  # How a member is run, apart from its properties and its heap.
  runtime = {
    java       = var.java
    libs       = trimsuffix(var.libs, "/")
    cluster_id = local.cluster_id
    secrets    = length(var.secrets) == 0 ? null : local.container ? "/run/secrets" : "\"$CREDENTIALS_DIRECTORY\""
  }
}

# A separate group: a broker needs a controller to shut down cleanly, so controllers start first and stop last.
resource "trainyard_group" "controllers" {
  cluster = local.cluster
  name    = "${var.name}-controllers"
  image   = var.image
  env     = var.env

  container = length(var.secrets) == 0 ? null : { secrets = local.secrets }

  roles = {
    controller = {
      replicas = var.controller.replicas
      port     = var.controller.port
      command = ["/bin/sh", "-euc", templatefile("${path.module}/server.sh.tftpl", merge(local.runtime, {
        folder = local.storage.controller.folder
        heap   = var.controller.heap_mib
        properties = merge(local.conf, var.controller.conf, {
          "process.roles" = "controller"
          "node.id"       = "{{ printf \"1%03d\" .Index }}"
          "listeners"     = "CONTROLLER://{{ .Address }}"
          "controller.quorum.voters" = join(",", [
            for i in range(var.controller.replicas) : "${1000 + i}@{{ address \"controller\" ${i} }}"
          ])
        })
      }))]
      env          = var.controller.env
      mounts       = length(local.storage.controller.mounts) == 0 ? null : local.storage.controller.mounts
      resources    = var.controller.resources
      placement    = var.controller.placement
      grace_period = "30s"
      restart      = { condition = "always" }
      update       = { parallelism = 1, delay = "15s" } # more than half of them have to be up
    }
  }

  completion = { when = "never" }
  priority   = var.priority
  triggers   = var.triggers
  timeouts   = var.timeouts
}

resource "trainyard_group" "this" {
  cluster = local.cluster
  name    = var.name
  image   = var.image
  env     = var.env

  container = length(var.secrets) == 0 ? null : { secrets = local.secrets }

  roles = {
    broker = {
      replicas = var.autoscale == null ? local.brokers : null
      port     = var.broker.port
      command = ["/bin/sh", "-euc", templatefile("${path.module}/server.sh.tftpl", merge(local.runtime, {
        folder = local.storage.broker.folder
        heap   = var.broker.heap_mib
        properties = merge(
          local.conf,
          { "listeners" = "PLAINTEXT://{{ .Address }}", "advertised.listeners" = "PLAINTEXT://{{ .Address }}" },
          var.broker.conf,
          {
            "process.roles"            = "broker"
            "node.id"                  = "{{ .Index }}"
            "controller.quorum.voters" = join(",", [for i, address in local.controllers : "${1000 + i}@${address}"])
          },
        )
      }))]
      env          = var.broker.env
      mounts       = length(local.storage.broker.mounts) == 0 ? null : local.storage.broker.mounts
      resources    = var.broker.resources
      placement    = var.broker.placement
      grace_period = var.broker.grace_period
      restart      = { condition = "always" }
      update       = { parallelism = 1, delay = var.broker.update_delay }
      on_scale     = "none" # brokers learn about each other from the controllers
    }
  }

  completion = { when = "never" }
  priority   = var.priority
  triggers   = var.triggers
  timeouts   = var.timeouts

  depends_on = [trainyard_group.controllers]
}
