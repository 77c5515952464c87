locals {
  cluster = { name = var.cluster.name, engine = var.cluster.engine, endpoint = var.cluster.endpoint }
  swarm   = var.cluster.engine == "swarm"

  # The module's own program, unless there is a command. Bare hosts and processes get a folder, a Swarm gets configs.
  own     = var.command == null
  brought = !local.swarm && (local.own || var.files != null)
  folder  = local.swarm ? "/srv/experiments" : one(trainyard_files.this[*].path)
  configs_of_program = {
    for file in fileset("${path.module}/train", "*.py") : file => {
      target  = "${local.folder}/${file}"
      content = file("${path.module}/train/${file}")
    } if local.swarm && local.own
  }

  # On bare hosts with an image, runs are containers, which need the folder as a mount.
  mounts = flatten([
    coalesce(var.mounts, []),
    local.brought && var.cluster.engine == "systemd" && var.image != null ? [{
      type = "bind", source = local.folder, target = local.folder, read_only = true, size_mib = null, driver = null
    }] : [],
  ])

  settings = {
    PYTHONUNBUFFERED        = "1" # logs arrive as they are written
    PYTHONDONTWRITEBYTECODE = "1" # keep the program's folder unchanged
    OPENBLAS_NUM_THREADS    = "1" # a run is one of many
  }

  results = coalesce(var.results.path, local.swarm ? "/results" : "results")

  # Whether a mount shares what runs write with TensorBoard, by target. A folder is in the mount with the longest target
  # that it begins with: the last one, as keys are sorted.
  shown = { for mount in coalesce(var.mounts, []) : "${trimsuffix(mount.target, "/")}/" => mount.type != "tmpfs"... }
}

resource "trainyard_files" "this" {
  count = local.brought ? 1 : 0

  cluster = local.cluster
  name    = var.name
  source  = coalesce(var.files, "${path.module}/train")

  # Runs refer to the path: create the new files before removing the old ones.
  lifecycle {
    create_before_destroy = true
  }
}

# Who added which run; null means nobody knows. A run keeps that, so no change of started_by restarts it.
resource "terraform_data" "started_by" {
  for_each = toset(local.keys)

  input = var.started_by

  lifecycle {
    ignore_changes = [input]
  }
}

resource "trainyard_sweep" "this" {
  cluster = local.cluster
  name    = var.name

  image       = var.image
  command     = local.own ? [var.python, "${local.folder}/train.py"] : var.command
  args        = var.args
  env         = merge(local.settings, var.env)
  working_dir = local.brought && !local.own ? local.folder : null
  mounts      = length(local.mounts) == 0 ? null : local.mounts
  container   = length(local.configs_of_program) == 0 ? null : { configs = local.configs_of_program }

  runs   = { for key, by in terraform_data.started_by : key => by.input == null ? {} : { STARTED_BY = by.input } }
  config = local.configs

  max_parallel = var.max_parallel
  progress = var.progress == null ? null : {
    pattern   = coalesce(var.progress.pattern, "\"episode\": ?(?P<step>[0-9]+)")
    settle    = var.progress.settle
    threshold = var.progress.threshold
  }
  resources = var.resources
  gpus      = var.gpus
  admission = var.gpus == null && !var.admission.free_memory ? null : {
    free_gpu_memory = var.gpus != null && var.admission.free_gpu_memory
    free_memory     = var.admission.free_memory
    reserve_percent = var.admission.reserve_percent
    settle          = var.admission.settle
  }
  placement = var.placement
  priority  = var.priority

  retry        = var.retry
  on_failure   = var.on_failure
  grace_period = var.grace_period
  rerun        = var.rerun
  triggers     = var.triggers
  wait_for     = var.wait_for
  timeouts     = var.timeouts

  objective = !local.own && var.objective == null ? null : {
    pattern = try(var.objective.pattern, "\"final_reward\": ?([-0-9.]+)")
    goal    = try(var.objective.goal, null)
  }
  results   = merge(var.results, { path = local.results })
  on_finish = var.on_finish

  lifecycle {
    precondition {
      condition     = length(local.problems) == 0
      error_message = join("\n", local.problems)
    }

    precondition {
      condition     = length(local.misfits) == 0
      error_message = join("\n", local.misfits)
    }

    precondition {
      condition     = length(local.misnamed) == 0
      error_message = "runs has ${join(", ", formatlist("%q", local.misnamed))}: each key must be a DNS label (lower-case letters, digits and hyphens, starting with a letter), and <name>-<key>-0 may have at most 63 characters."
    }
  }
}

# A separate group: it keeps running when the runs have ended. Published ports of containers on a Swarm lead to another
# address than their name.
resource "trainyard_group" "tensorboard" {
  count = var.tensorboard == null ? 0 : 1

  cluster = local.cluster
  name    = "${var.name}-tensorboard"

  roles = {
    web = {
      image     = try(coalesce(var.tensorboard.image, var.image), null)
      command   = var.tensorboard.command
      args      = ["--logdir", "${local.results}/${var.name}", "--host", local.swarm ? "0.0.0.0" : "{{ hostname .Address }}", "--port", "{{ .Port }}"]
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
      # On a Swarm, an image that is unknown at plan does not matter, which only a conditional expresses.
      condition     = (local.swarm ? false : var.cluster.engine == "systemd" ? var.image == null && var.tensorboard.image == null : true) ? true : try(alltrue(reverse([for target, shows in local.shown : shows if startswith("${local.results}/", target)])[0]), false)
      error_message = "results.path is \"${local.results}\", but TensorBoard is a container, which can't see it: it must be in the target of a mount of type bind or volume, in mounts."
    }
  }
}
