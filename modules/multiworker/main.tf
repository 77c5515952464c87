locals {
  cluster    = { name = var.cluster.name, engine = var.cluster.engine, endpoint = var.cluster.endpoint }
  swarm      = var.cluster.engine == "swarm"
  containers = local.swarm ? true : var.cluster.engine == "systemd" ? var.image != null : false

  # A separate network belongs to a separate cluster, in the same Swarm.
  training = var.network == null ? local.cluster : {
    name     = trainyard_cluster.own[0].name
    engine   = trainyard_cluster.own[0].engine
    endpoint = trainyard_cluster.own[0].endpoint
  }

  # The module's own program, unless there is a command. Bare hosts and processes get a folder, a Swarm gets configs.
  own     = var.command == null
  brought = !local.swarm && (local.own || var.files != null)
  folder  = local.swarm ? "/srv/multiworker" : one(trainyard_files.this[*].path)
  configs = {
    for file in ["train.py", "members.py", "data.py"] : file => {
      target  = "${local.folder}/${file}"
      content = file("${path.module}/train/${file}")
    } if local.swarm && local.own
  }

  # Containers on bare hosts need the folder as a mount.
  mounts = flatten([
    coalesce(var.mounts, []),
    coalesce(var.worker.mounts, []),
    local.brought && local.containers ? [{
      type = "bind", source = local.folder, target = local.folder, read_only = true, size_mib = null, driver = null
    }] : [],
  ])

  # Whether a mount keeps what a container writes to it, and whether TensorBoard sees it, by target. A folder is in the
  # mount with the longest target that it begins with: the last one, as keys are sorted.
  kept = {
    for mount in concat(coalesce(var.mounts, []), coalesce(var.worker.mounts, [])) :
    "${trimsuffix(mount.target, "/")}/" => mount.type != "tmpfs" && !coalesce(mount.read_only, false)...
  }
  shown = { for mount in coalesce(var.mounts, []) : "${trimsuffix(mount.target, "/")}/" => mount.type != "tmpfs"... }

  # A container that restarts loses what it has written anywhere else. A program of your own may mount a folder itself.
  lost = !local.own || !local.containers ? {} : {
    for name, folder in { log_dir = var.log_dir, model_dir = var.model_dir } : name => folder
    if folder == null ? false : !try(alltrue(reverse([for target, keeps in local.kept : keeps if startswith("${folder}/", target)])[0]), false)
  }

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
      EPOCHS                  = tostring(var.epochs)
      STEPS_PER_EPOCH         = tostring(var.steps_per_epoch)
      LEARNING_RATE           = tostring(var.learning_rate)
      JOIN_TIMEOUT            = var.join_timeout
      PYTHONUNBUFFERED        = "1" # logs arrive as they are written
      PYTHONDONTWRITEBYTECODE = "1" # keep the program's folder unchanged
    },
    var.seed == null ? {} : { SEED = tostring(var.seed) },
    var.initial_model == null ? {} : { INITIAL_MODEL = var.initial_model },
    var.log_dir == null ? {} : { LOG_DIR = var.log_dir },
    var.model_dir == null ? {} : { MODEL_DIR = var.model_dir },
  )
}

resource "trainyard_cluster" "own" {
  count = var.network == null ? 0 : 1

  name     = "${var.cluster.name}-${var.name}"
  engine   = "swarm"
  endpoint = var.cluster.endpoint
  network  = var.network

  # With their addresses, all hosts get Trainyard's image, which agents need, and controllers on other managers. A
  # destroy leaves them in the Swarm, except those that had dropped out of it and joined again with this cluster.
  hosts = var.cluster.hosts
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
  cluster   = local.training
  name      = var.name
  framework = "tensorflow"

  image       = var.image
  command     = local.own ? [var.python, "${local.folder}/train.py"] : var.command
  args        = var.args
  env         = merge(local.settings, var.env)
  working_dir = local.brought ? local.folder : null

  # As the first process of a container, a program would ignore the stop signal, and the end of its wait for others.
  container = !local.containers && length(var.secrets) == 0 ? null : {
    init    = local.containers ? true : null
    configs = length(local.configs) == 0 ? null : local.configs
    secrets = length(var.secrets) == 0 ? null : local.secrets
  }

  roles = {
    worker = {
      replicas     = var.worker.replicas
      port         = var.worker.port
      env          = var.worker.env
      mounts       = length(local.mounts) == 0 ? null : local.mounts
      resources    = var.worker.resources
      gpus         = var.worker.gpus
      placement    = var.worker.placement
      grace_period = var.grace_period
      restart      = { condition = "on_failure", max_attempts = var.max_restarts }
      exit_codes   = { final = local.own ? ["2", "126-127"] : ["126-127"] } # 2: a restart won't help
    }
  }

  # No worker can join a running training: a failure takes all of them back to the last checkpoint.
  restart_scope = "group"

  # Worker 0 saves the model, then ends.
  completion = { when = "chief", deadline = var.deadline }
  wait_for   = var.wait_for
  priority   = var.priority
  triggers   = var.triggers
  timeouts   = var.timeouts

  lifecycle {
    precondition {
      condition     = length(local.lost) == 0
      error_message = join("\n", [for name, folder in local.lost : "${name} is \"${folder}\", but workers are containers, which lose it when they restart: it must be in the target of a writable mount of type bind or volume, in mounts or worker.mounts."])
    }
  }
}

# A separate group: it keeps running when training has completed, and changing it does not restart training. Published
# ports of containers on a Swarm lead to another address than their name.
resource "trainyard_group" "tensorboard" {
  count = var.tensorboard == null ? 0 : 1

  cluster = local.training
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
      condition     = !local.own || !(local.containers ? true : var.cluster.engine == "systemd" && var.tensorboard.image != null) || try(alltrue(reverse([for target, shows in local.shown : shows if startswith("${var.log_dir}/", target)])[0]), false)
      error_message = "log_dir is \"${var.log_dir}\", but TensorBoard is a container, which can't see it: it must be in the target of a mount of type bind or volume, in mounts."
    }
  }
}
