locals {
  cluster    = { name = var.cluster.name, engine = var.cluster.engine, endpoint = var.cluster.endpoint }
  swarm      = var.cluster.engine == "swarm"
  containers = local.swarm || var.cluster.engine == "systemd" && var.image != null

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
  container   = length(local.configs) == 0 ? null : { configs = local.configs }

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
      exit_codes   = { final = ["2", "126-127"] } # 2: a restart won't help
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
}

# A separate group: it keeps running when training has completed, and changing it does not restart training.
resource "trainyard_group" "tensorboard" {
  count = var.tensorboard == null ? 0 : 1

  cluster = local.training
  name    = "${var.name}-tensorboard"

  roles = {
    web = {
      image     = try(coalesce(var.tensorboard.image, var.image), null)
      command   = var.tensorboard.command
      args      = ["--logdir", var.log_dir, "--host", "{{ hostname .Address }}", "--port", "{{ .Port }}"]
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
}
