# How members get the program, by engine.
# Only for Terraform: OpenTofu mocks in another way.

mock_provider "trainyard" {
  mock_resource "trainyard_files" {
    defaults = { path = "/srv/files" }
  }
}

variables {
  secret_values = {} # an apply of a root module requires all of its ephemeral variables
}

run "swarm" {
  variables {
    cluster     = { name = "lab", engine = "swarm" }
    image       = "tensorflow/tensorflow:2.21.0"
    log_dir     = "/logs"
    mounts      = [{ type = "volume", source = "mnist", target = "/logs", driver = { name = "local", options = { type = "nfs" } } }]
    ps          = { mounts = [{ type = "tmpfs", target = "/scratch" }] }
    worker      = { gpus = { pool = "v100" }, env = { NCCL_DEBUG = "INFO" } }
    tensorboard = { published_port = 16006, placement = { hosts = ["gpu1"] } }
  }

  assert {
    condition     = length(trainyard_files.this) == 0 && output.path == null && trainyard_group.this.working_dir == null
    error_message = "Containers on a Swarm don't get files."
  }

  assert {
    condition = (
      trainyard_group.this.command == tolist(["python3", "/srv/ps-worker/train_v1.py"]) && alltrue([for role in values(trainyard_group.this.roles) : role.container.init])
      && { for name, config in trainyard_group.this.roles.worker.container.configs : config.target => config.content } == {
        "/srv/ps-worker/train_v1.py" = file("train/train_v1.py")
        "/srv/ps-worker/data.py"     = file("train/data.py")
      }
    )
    error_message = "The module's own program must come as configs."
  }

  assert {
    condition = (
      trainyard_group.this.roles.worker.mounts[0].driver.options.type == "nfs" && trainyard_group.this.roles.ps.mounts[*].target == tolist(["/logs", "/scratch"]) && trainyard_group.this.roles.worker.mounts[*].target == tolist(["/logs"])
      && trainyard_group.this.roles.worker.gpus.pool == "v100" && trainyard_group.this.roles.ps.gpus == null
      && trainyard_group.this.roles.worker.env.NCCL_DEBUG == "INFO" && trainyard_group.this.env.LOG_DIR == "/logs"
    )
    error_message = "All members must have the module's mounts, and only workers GPUs."
  }

  assert {
    condition = (
      trainyard_group.tensorboard[0].roles.web.image == "tensorflow/tensorflow:2.21.0"
      && trainyard_group.tensorboard[0].roles.web.mounts[0].source == "mnist"
      && trainyard_group.tensorboard[0].roles.web.container.ports.web.published == 16006
      && trainyard_group.tensorboard[0].roles.web.container.ports.web.target == 6006
      && trainyard_group.tensorboard[0].roles.web.args[3] == "0.0.0.0"
      && trainyard_group.tensorboard[0].roles.web.placement.hosts == tolist(["gpu1"])
      && trainyard_group.tensorboard[0].completion.when == "never"
    )
    error_message = "TensorBoard must see the folder, and be published at the configured port."
  }
}

run "program_of_an_image" {
  variables {
    cluster = { name = "lab", engine = "swarm" }
    image   = "trainer:1.2"
    command = ["/trainer"]
    args    = ["--ps_hosts={{ addresses \"ps\" }}"]
    env     = { BATCH_SIZE = "64" }
  }

  assert {
    condition     = trainyard_group.this.command == tolist(["/trainer"]) && trainyard_group.this.args[0] == "--ps_hosts={{ addresses \"ps\" }}" && trainyard_group.this.roles.worker.container.configs == null
    error_message = "The image's program must run as configured."
  }

  assert {
    condition     = trainyard_group.this.env.BATCH_SIZE == "64" && trainyard_group.this.env.HIDDEN_UNITS == "100"
    error_message = "env must override the module's settings."
  }
}

run "containers_by_role" {
  variables {
    cluster       = { name = "lab", engine = "systemd", endpoint = "ssh://ops@gpu1" }
    command       = ["/trainer"]
    worker        = { image = "trainer:1.2" }
    secrets       = { token = { version = "1" } }
    secret_values = { token = "hunter2" }
  }

  assert {
    condition = (
      trainyard_group.this.roles.worker.container.init && trainyard_group.this.roles.ps.container.init == null
      && alltrue([for role in values(trainyard_group.this.roles) : role.container.secrets["token"].version == "1"])
    )
    error_message = "Only containers have an init process, which forwards the stop signal to their program."
  }
}

run "files_of_processes" {
  variables {
    cluster = { name = "lab", engine = "process" }
    files   = "./train"
    command = ["python3", "train_v1.py"]
  }

  assert {
    condition     = trainyard_files.this[0].source == "./train" && trainyard_group.this.working_dir == "/srv/files" && trainyard_group.this.command[1] == "train_v1.py"
    error_message = "The command must run in the folder of the files."
  }

  assert {
    condition     = trainyard_group.this.roles.worker.mounts == null && trainyard_group.this.roles.worker.container == null
    error_message = "Processes need no containers' settings, and no mounts to see their host's files."
  }
}

run "containers_on_bare_hosts" {
  variables {
    cluster = { name = "lab", engine = "systemd", endpoint = "ssh://ops@gpu1" }
    image   = "tensorflow/tensorflow:2.21.0"
    files   = "./train"
    command = ["python3", "train_v1.py"]
    mounts  = [{ source = "/mnt/nas", target = "/mnt/nas" }]
  }

  assert {
    condition     = trainyard_group.this.roles.worker.mounts[1].source == "/srv/files" && trainyard_group.this.roles.worker.mounts[1].target == "/srv/files" && trainyard_group.this.roles.worker.mounts[1].read_only
    error_message = "Containers must see the files."
  }
}

run "policy" {
  variables {
    cluster   = { name = "lab" }
    log_dir   = "/srv/logs"
    autoscale = { min = 2, max = 6, settle = "2m" }
  }

  assert {
    condition     = trainyard_group.this.roles.ps.replicas == 2
    error_message = "The policy must be for workers only."
  }

  assert {
    condition = (
      trainyard_autoscaling_policy.this[0].role == "worker" && trainyard_autoscaling_policy.this[0].group == "ps-worker"
      && trainyard_autoscaling_policy.this[0].min == 2 && trainyard_autoscaling_policy.this[0].max == 6
      && trainyard_autoscaling_policy.this[0].metrics.steps.algorithm.marginal_gain.settle == "2m"
      && trainyard_autoscaling_policy.this[0].metrics.steps.algorithm.marginal_gain.threshold == 0.1
      && trainyard_autoscaling_policy.this[0].metrics.steps.source.progress.role == "worker"
      && trainyard_autoscaling_policy.this[0].metrics.steps.source.progress.combine == "mean"
    )
    error_message = "The policy must follow the steps that all workers report."
  }

  assert {
    condition = (
      trainyard_autoscaling_policy.this[0].metrics.steps.window == "60s" && trainyard_autoscaling_policy.this[0].interval == "5s"
      && trainyard_autoscaling_policy.this[0].scale_in.stabilisation_window == "0s"
    )
    error_message = "Progress is measured over half of the settling time, and a count that doesn't pay off is given up at once."
  }
}

run "policy_that_settles_soon" {
  variables {
    cluster   = { name = "lab" }
    log_dir   = "/srv/logs"
    autoscale = { max = 6, settle = "0.1m2.5s" }
  }

  assert {
    condition     = trainyard_autoscaling_policy.this[0].metrics.steps.window == "4s" && trainyard_autoscaling_policy.this[0].interval == "1s"
    error_message = "With 8.5s to settle, progress is measured over 4s, every second."
  }
}

run "policy_of_a_coordinator" {
  variables {
    cluster   = { name = "lab" }
    framework = "tensorflow"
    autoscale = { max = 6, dry_run = true }
  }

  assert {
    condition     = trainyard_autoscaling_policy.this[0].metrics.steps.source.progress.role == "chief" && trainyard_autoscaling_policy.this[0].dry_run
    error_message = "The coordinator reports the steps."
  }
}

run "secrets" {
  command = plan

  variables {
    cluster       = { name = "lab", engine = "swarm" }
    image         = "tensorflow/tensorflow:2.21.0"
    secrets       = { token = { version = "2" }, key = { version = "1", target = "/etc/key", mode = "0440" } }
    secret_values = { token = "hunter2", key = "swordfish" }
  }

  assert {
    condition = (
      join(" ", keys(trainyard_group.this.roles.worker.container.secrets)) == "key token" && trainyard_group.this.roles.worker.container.secrets["token"].version == "2" && trainyard_group.this.roles.worker.container.secrets["token"].target == null
      && trainyard_group.this.roles.worker.container.secrets["key"].target == "/etc/key" && trainyard_group.this.roles.worker.container.secrets["key"].mode == "0440" && length(trainyard_group.this.roles.worker.container.configs) > 0
    )
    error_message = "Members must get the secrets beside the module's own program."
  }

  assert {
    condition     = alltrue([for secret in values(trainyard_group.this.roles.worker.container.secrets) : secret.value == null])
    error_message = "The values must not be in the plan."
  }
}

run "secrets_of_programs" {
  command = plan

  variables {
    cluster       = { name = "lab", engine = "systemd", endpoint = "ssh://ops@gpu1" }
    image         = null
    secrets       = { token = { version = "1" } }
    secret_values = { token = "hunter2" }
  }

  assert {
    condition     = trainyard_group.this.roles.worker.container.configs == null && trainyard_group.this.roles.worker.container.secrets["token"].version == "1"
    error_message = "Members on bare hosts must get the secrets, too."
  }
}
