locals {
  cluster = { name = var.cluster.name, engine = var.cluster.engine, endpoint = var.cluster.endpoint }
  swarm   = var.cluster.engine == "swarm"
  v1      = var.framework == "tensorflow_v1"
  job     = var.train_steps > 0

  # The chief trains, saves and evaluates, and its log reports progress: worker 0, or the coordinator of TensorFlow 2.
  chief_role = local.v1 ? "worker" : "chief"
  chief      = "${var.name}-${local.chief_role}-0"

  # The module's own program, unless there is a command. Bare hosts and processes get a folder, a Swarm gets configs.
  own     = var.command == null
  program = local.v1 ? "train_v1.py" : "train_v2.py"
  brought = !local.swarm && (local.own || var.files != null)
  folder  = local.swarm ? "/srv/ps-worker" : one(trainyard_files.this[*].path)
  configs = {
    for file in [local.program, "data.py"] : file => {
      target  = "${local.folder}/${file}"
      content = file("${path.module}/train/${file}")
    } if local.swarm && local.own
  }

  # On bare hosts with an image, members are containers, which need the folder as a mount.
  images = compact([var.image, var.ps.image, var.worker.image, var.chief.image])
  mounts = flatten([
    coalesce(var.mounts, []),
    local.brought && var.cluster.engine == "systemd" && length(local.images) > 0 ? [{
      type = "bind", source = local.folder, target = local.folder, read_only = true, size_mib = null, driver = null
    }] : [],
  ])

  # Whether a mount keeps what a container writes to it, by role, and whether TensorBoard sees it, by target. A folder
  # is in the mount with the longest target that it begins with: the last one, as keys are sorted. On a Swarm, an image
  # that is unknown at plan does not matter, which only a conditional expresses.
  containers = [for name, role in local.roles : name if local.swarm ? true : var.cluster.engine == "systemd" ? var.image != null || role.image != null : false]
  kept = {
    for name, role in local.roles : name => {
      for mount in concat(coalesce(var.mounts, []), coalesce(role.mounts, [])) :
      "${trimsuffix(mount.target, "/")}/" => mount.type != "tmpfs" && !coalesce(mount.read_only, false)...
    }
  }
  shown = { for mount in coalesce(var.mounts, []) : "${trimsuffix(mount.target, "/")}/" => mount.type != "tmpfs"... }

  # A container that restarts loses what it has written anywhere else. Parameter servers write their variables of a
  # checkpoint themselves, the chief the rest. A program of your own may mount a folder itself.
  lost = !local.own || var.log_dir == null ? [] : [
    for name in ["ps", local.chief_role] : name if contains(local.containers, name)
    && !try(alltrue(reverse([for target, keeps in local.kept[name] : keeps if startswith("${var.log_dir}/", target)])[0]), false)
  ]

  # The values are write-only: Terraform stores only the versions.
  secrets = {
    for name, secret in var.secrets : name => {
      value   = var.secret_values[name]
      version = secret.version
      target  = secret.target
      mode    = secret.mode
    }
  }

  settings = merge(
    {
      BATCH_SIZE              = tostring(var.batch_size)
      LEARNING_RATE           = tostring(var.learning_rate)
      HIDDEN_UNITS            = tostring(var.hidden_units)
      TRAIN_STEPS             = tostring(var.train_steps)
      PYTHONUNBUFFERED        = "1" # logs arrive as they are written
      PYTHONDONTWRITEBYTECODE = "1" # keep the program's folder unchanged

      # A connection to a host without power ends when it has not answered for 20 seconds, not after a quarter of an
      # hour: it is the keepalive that sets the kernel's timeout. Servers end a connection with more pings than these.
      TF_GRPC_DEFAULT_OPTIONS = "grpc.keepalive_time_ms=300000,grpc.keepalive_timeout_ms=20000"
    },
    var.log_dir == null ? {} : { LOG_DIR = var.log_dir },
  )

  # Progress is measured over the second half of the settling time, which is what counts, and often enough for a mean.
  seconds = { ms = 0.001, s = 1, m = 60, h = 3600 }
  settle = sum(concat([0], [
    for part in regexall("([0-9.]+)(ms|s|m|h)", try(var.autoscale.settle, "")) : tonumber(part[0]) * local.seconds[part[1]]
  ]))

  roles = merge(
    {
      ps     = merge(var.ps, { gpus = null })
      worker = merge(var.worker, { replicas = var.autoscale == null ? coalesce(var.worker.replicas, 2) : null })
    },
    local.v1 ? {} : { chief = merge(var.chief, { replicas = 1, gpus = null }) },
  )
}

resource "trainyard_files" "this" {
  count = local.brought ? 1 : 0

  cluster = local.cluster
  name    = var.name
  source  = coalesce(var.files, "${path.module}/train")

  # Members refer to the path: create the new files before removing the old ones.
  lifecycle {
    create_before_destroy = true
  }
}

resource "trainyard_group" "this" {
  cluster   = local.cluster
  name      = var.name
  framework = var.framework

  image       = var.image
  command     = local.own ? [var.python, "${local.folder}/${local.program}"] : var.command
  args        = var.args
  env         = merge(local.settings, var.env)
  working_dir = local.brought ? local.folder : null

  roles = {
    for name, role in local.roles : name => {
      replicas     = role.replicas
      port         = role.port
      image        = role.image
      env          = role.env
      mounts       = length(concat(local.mounts, coalesce(role.mounts, []))) == 0 ? null : concat(local.mounts, coalesce(role.mounts, []))
      resources    = role.resources
      gpus         = role.gpus
      placement    = role.placement
      grace_period = var.grace_period
      restart      = { condition = "on_failure", max_attempts = var.max_restarts }

      # As the first process of a container, a program would ignore the stop signal.
      container = !contains(local.containers, name) && length(var.secrets) == 0 ? null : {
        init    = contains(local.containers, name) ? true : null
        configs = length(local.configs) == 0 ? null : local.configs
        secrets = length(var.secrets) == 0 ? null : local.secrets
      }
    }
  }

  # Parameter servers never exit on their own: training ends when the chief does.
  completion = local.job ? { when = "chief", deadline = var.deadline } : { when = "never" }
  wait_for   = var.wait_for
  priority   = var.priority
  triggers   = var.triggers
  timeouts   = var.timeouts

  lifecycle {
    precondition {
      condition     = length(local.lost) == 0
      error_message = "log_dir is \"${coalesce(var.log_dir, "-")}\", but members of ${join(" and ", local.lost)} are containers, which lose it when they restart: it must be in the target of a writable mount of type bind or volume, in mounts, or in ${join(" and ", formatlist("%s.mounts", local.lost))}."
    }
  }
}

resource "trainyard_autoscaling_policy" "this" {
  count = var.autoscale == null ? 0 : 1

  cluster  = local.cluster
  group    = trainyard_group.this.name
  role     = "worker"
  min      = var.autoscale.min
  max      = var.autoscale.max
  dry_run  = var.autoscale.dry_run
  interval = "${min(5, max(1, floor(local.settle / 10)))}s"
  scale_in = { stabilisation_window = "0s" } # a count has been measured for long enough before it changes

  metrics = {
    steps = {
      window = "${min(3600, max(1, floor(local.settle / 2)))}s"

      # Each member reports the global step, and there is nothing to measure before all of them train.
      source = { progress = { pattern = var.autoscale.pattern, combine = "mean", role = local.chief_role } }

      algorithm = {
        marginal_gain = {
          threshold   = var.autoscale.threshold
          settle      = var.autoscale.settle
          retry_after = var.autoscale.retry_after
        }
      }
    }
  }
}

# A separate group: it keeps running when training has completed, and changing it does not restart training. Published
# ports of containers on a Swarm lead to another address than their name.
resource "trainyard_group" "tensorboard" {
  count = var.tensorboard == null ? 0 : 1

  cluster = local.cluster
  name    = "${var.name}-tensorboard"

  roles = {
    web = {
      image     = try(coalesce(var.tensorboard.image, var.image), null)
      command   = var.tensorboard.command
      args      = ["--logdir", var.log_dir, "--host", local.swarm ? "0.0.0.0" : "{{ hostname .Address }}", "--port", "{{ .Port }}"]
      port      = var.tensorboard.port
      mounts    = length(coalesce(var.mounts, [])) == 0 ? null : var.mounts
      resources = var.tensorboard.resources
      placement = var.tensorboard.placement
      restart   = { condition = "always" }

      container = var.tensorboard.published_port == null ? null : {
        ports = { web = { target = var.tensorboard.port, published = var.tensorboard.published_port } }
      }
    }
  }

  completion = { when = "never" }

  lifecycle {
    precondition {
      condition     = !local.own || (local.swarm ? false : var.cluster.engine == "systemd" ? var.image == null && var.tensorboard.image == null : true) || try(alltrue(reverse([for target, shows in local.shown : shows if startswith("${var.log_dir}/", target)])[0]), false)
      error_message = "log_dir is \"${var.log_dir}\", but TensorBoard is a container, which can't see it: it must be in the target of a mount of type bind or volume, in mounts."
    }
  }
}
