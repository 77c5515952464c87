# Invalid values are reported at plan time.

mock_provider "trainyard" {
  mock_resource "trainyard_files" {
    defaults = { path = "/srv/files" }
  }
}

variables {
  cluster = { name = "lab" }
}

run "engine_that_there_is_not" {
  command = plan

  variables {
    cluster = { name = "lab", engine = "kubernetes" }
  }

  expect_failures = [var.cluster]
}

run "name_in_capitals" {
  command = plan

  variables {
    name = "MNIST"
  }

  expect_failures = [var.name]
}

run "name_too_long" {
  command = plan

  variables {
    name = "a23456789-123456789-123456789-123456789-123456"
  }

  expect_failures = [var.name]
}

run "framework_of_others" {
  command = plan

  variables {
    framework = "pytorch"
  }

  expect_failures = [var.framework]
}

run "files_on_a_swarm" {
  command = plan

  variables {
    cluster = { name = "lab", engine = "swarm" }
    image   = "trainer:1"
    files   = "."
    command = ["python3", "train.py"]
  }

  expect_failures = [var.files]
}

run "files_without_a_command" {
  command = plan

  variables {
    files = "."
  }

  expect_failures = [var.files]
}

run "swarm_without_an_image" {
  command = plan

  variables {
    cluster = { name = "lab", engine = "swarm" }
  }

  expect_failures = [var.image]
}

run "empty_image" {
  command = plan

  variables {
    image = " "
  }

  expect_failures = [var.image]
}

run "python_with_arguments" {
  command = plan

  variables {
    python = "python3 -O"
  }

  expect_failures = [var.python]
}

run "relative_python" {
  command = plan

  variables {
    python = "bin/python3"
  }

  expect_failures = [var.python]
}

run "empty_command" {
  command = plan

  variables {
    command = []
  }

  expect_failures = [var.command]
}

run "args_without_a_command" {
  command = plan

  variables {
    args = ["--verbose"]
  }

  expect_failures = [var.args]
}

run "reserved_env" {
  command = plan

  variables {
    env = { TRAINYARD_HOST = "gpu1" }
  }

  expect_failures = [var.env]
}

run "secrets_of_processes" {
  command = plan

  variables {
    secrets       = { token = { version = "1" } }
    secret_values = { token = "hunter2" }
  }

  expect_failures = [var.secrets]
}

run "secret_without_a_name" {
  command = plan

  variables {
    cluster       = { name = "lab", engine = "systemd" }
    secrets       = { "the token" = { version = "1" } }
    secret_values = { "the token" = "hunter2" }
  }

  expect_failures = [var.secrets]
}

run "secret_without_a_version" {
  command = plan

  variables {
    cluster       = { name = "lab", engine = "systemd" }
    secrets       = { token = { version = " " } }
    secret_values = { token = "hunter2" }
  }

  expect_failures = [var.secrets]
}

run "secret_in_a_relative_path" {
  command = plan

  variables {
    cluster       = { name = "lab", engine = "systemd" }
    secrets       = { token = { version = "1", target = "token" } }
    secret_values = { token = "hunter2" }
  }

  expect_failures = [var.secrets]
}

run "secret_in_the_root" {
  command = plan

  variables {
    cluster       = { name = "lab", engine = "systemd" }
    secrets       = { token = { version = "1", target = "/" } }
    secret_values = { token = "hunter2" }
  }

  expect_failures = [var.secrets]
}

run "secret_for_everybody" {
  command = plan

  variables {
    cluster       = { name = "lab", engine = "systemd" }
    secrets       = { token = { version = "1", mode = "rw-r--r--" } }
    secret_values = { token = "hunter2" }
  }

  expect_failures = [var.secrets]
}

run "secret_without_a_value" {
  command = plan

  variables {
    cluster       = { name = "lab", engine = "systemd" }
    secrets       = { token = { version = "1" } }
    secret_values = {}
  }

  expect_failures = [var.secret_values]
}

run "value_of_no_secret" {
  command = plan

  variables {
    cluster       = { name = "lab", engine = "systemd" }
    secret_values = { token = "hunter2" }
  }

  expect_failures = [var.secret_values]
}

run "relative_mount" {
  command = plan

  variables {
    mounts = [{ source = "/srv/data", target = "data" }]
  }

  expect_failures = [var.mounts]
}

run "mount_of_no_type" {
  command = plan

  variables {
    mounts = [{ type = "nfs", target = "/data" }]
  }

  expect_failures = [var.mounts]
}

run "no_parameter_server" {
  command = plan

  variables {
    ps = { replicas = 0 }
  }

  expect_failures = [var.ps]
}

run "port_of_parameter_servers_too_large" {
  command = plan

  variables {
    ps = { port = 65536 }
  }

  expect_failures = [var.ps]
}

run "no_image_of_parameter_servers" {
  command = plan

  variables {
    ps = { image = "" }
  }

  expect_failures = [var.ps]
}

run "env_of_parameter_servers_that_is_no_name" {
  command = plan

  variables {
    ps = { env = { "1A" = "x" } }
  }

  expect_failures = [var.ps]
}

run "no_worker" {
  command = plan

  variables {
    worker = { replicas = 0 }
  }

  expect_failures = [var.worker]
}

run "half_a_worker" {
  command = plan

  variables {
    worker = { replicas = 1.5 }
  }

  expect_failures = [var.worker]
}

run "port_of_workers_in_parts" {
  command = plan

  variables {
    worker = { port = 9000.5 }
  }

  expect_failures = [var.worker]
}

run "no_image_of_workers" {
  command = plan

  variables {
    worker = { image = "" }
  }

  expect_failures = [var.worker]
}

run "env_of_workers_that_is_reserved" {
  command = plan

  variables {
    worker = { env = { TRAINYARD_HOST = "x" } }
  }

  expect_failures = [var.worker]
}

run "no_gpus" {
  command = plan

  variables {
    worker = { gpus = { pool = "v100", count = 0 } }
  }

  expect_failures = [var.worker]
}

run "more_gpus_than_the_program_uses" {
  command = plan

  variables {
    worker = { gpus = { pool = "v100", count = 2 } }
  }

  expect_failures = [var.worker]
}

run "replicas_under_a_policy" {
  command = plan

  variables {
    worker    = { replicas = 2 }
    log_dir   = "/srv/logs"
    autoscale = { max = 4 }
  }

  expect_failures = [var.worker]
}

run "chief_of_servers_of_version_1" {
  command = plan

  variables {
    chief = { resources = { cpus = 1 } }
  }

  expect_failures = [var.chief]
}

run "port_of_the_chief_of_version_1" {
  command = plan

  variables {
    chief = { port = 7001 }
  }

  expect_failures = [var.chief]
}

run "port_of_the_chief_too_small" {
  command = plan

  variables {
    framework = "tensorflow"
    chief     = { port = 0 }
  }

  expect_failures = [var.chief]
}

run "no_image_of_the_chief" {
  command = plan

  variables {
    framework = "tensorflow"
    chief     = { image = "" }
  }

  expect_failures = [var.chief]
}

run "env_of_the_chief_that_is_no_name" {
  command = plan

  variables {
    framework = "tensorflow"
    chief     = { env = { "A-B" = "x" } }
  }

  expect_failures = [var.chief]
}

run "empty_batches" {
  command = plan

  variables {
    batch_size = 0
  }

  expect_failures = [var.batch_size]
}

run "learning_backwards" {
  command = plan

  variables {
    learning_rate = -0.1
  }

  expect_failures = [var.learning_rate]
}

run "no_hidden_units" {
  command = plan

  variables {
    hidden_units = 0
  }

  expect_failures = [var.hidden_units]
}

run "steps_backwards" {
  command = plan

  variables {
    train_steps = -1
  }

  expect_failures = [var.train_steps]
}

run "wait_for_accuracy" {
  command = plan

  variables {
    wait_for = "accurate"
  }

  expect_failures = [var.wait_for]
}

run "wait_for_the_end_before_a_policy" {
  command = plan

  variables {
    train_steps = 2000
    wait_for    = "completed"
    log_dir     = "/srv/logs"
    autoscale   = { max = 4 }
  }

  expect_failures = [var.wait_for]
}

run "wait_for_the_end_of_a_service" {
  command = plan

  variables {
    wait_for = "completed"
  }

  expect_failures = [var.wait_for]
}

run "deadline_in_days" {
  command = plan

  variables {
    train_steps = 2000
    deadline    = "2d"
  }

  expect_failures = [var.deadline]
}

run "deadline_of_a_service" {
  command = plan

  variables {
    deadline = "2h"
  }

  expect_failures = [var.deadline]
}

run "restarts_in_parts" {
  command = plan

  variables {
    max_restarts = 0.5
  }

  expect_failures = [var.max_restarts]
}

run "grace_without_a_unit" {
  command = plan

  variables {
    grace_period = "10"
  }

  expect_failures = [var.grace_period]
}

run "priority_in_parts" {
  command = plan

  variables {
    priority = 0.5
  }

  expect_failures = [var.priority]
}

run "timeout_without_a_unit" {
  command = plan

  variables {
    timeouts = { create = "10" }
  }

  expect_failures = [var.timeouts]
}

run "relative_log_dir" {
  command = plan

  variables {
    log_dir = "logs"
  }

  expect_failures = [var.log_dir]
}

run "policy_from_nobody" {
  command = plan

  variables {
    log_dir   = "/srv/logs"
    autoscale = { min = 0, max = 4 }
  }

  expect_failures = [var.autoscale]
}

run "policy_to_less_than_from" {
  command = plan

  variables {
    log_dir   = "/srv/logs"
    autoscale = { min = 4, max = 2 }
  }

  expect_failures = [var.autoscale]
}

run "policy_without_a_threshold" {
  command = plan

  variables {
    log_dir   = "/srv/logs"
    autoscale = { max = 4, threshold = 0 }
  }

  expect_failures = [var.autoscale]
}

run "policy_that_settles_in_days" {
  command = plan

  variables {
    log_dir   = "/srv/logs"
    autoscale = { max = 4, settle = "1d" }
  }

  expect_failures = [var.autoscale]
}

run "policy_without_a_step" {
  command = plan

  variables {
    log_dir   = "/srv/logs"
    autoscale = { max = 4, pattern = "loss" }
  }

  expect_failures = [var.autoscale]
}

run "policy_without_checkpoints" {
  command = plan

  variables {
    autoscale = { max = 4 }
  }

  expect_failures = [var.autoscale]
}

run "tensorboard_of_nothing" {
  command = plan

  variables {
    tensorboard = {}
  }

  expect_failures = [var.tensorboard]
}

run "tensorboard_without_a_program" {
  command = plan

  variables {
    log_dir     = "/srv/logs"
    tensorboard = { command = [] }
  }

  expect_failures = [var.tensorboard]
}

run "tensorboard_at_no_port" {
  command = plan

  variables {
    log_dir     = "/srv/logs"
    tensorboard = { port = 0 }
  }

  expect_failures = [var.tensorboard]
}

run "tensorboard_published_by_processes" {
  command = plan

  variables {
    log_dir     = "/srv/logs"
    tensorboard = { published_port = 80 }
  }

  expect_failures = [var.tensorboard]
}

run "tensorboard_published_at_no_port" {
  command = plan

  variables {
    cluster     = { name = "lab", engine = "swarm" }
    image       = "trainer:1"
    log_dir     = "/srv/logs"
    mounts      = [{ source = "/srv", target = "/srv" }]
    tensorboard = { published_port = 0 }
  }

  expect_failures = [var.tensorboard]
}

run "log_dir_that_containers_lose" {
  command = plan

  variables {
    cluster = { name = "lab", engine = "swarm" }
    image   = "trainer:1"
    log_dir = "/srv/logs"
    mounts  = [{ source = "/srv/log", target = "/srv/log" }, { type = "tmpfs", target = "/srv" }]
  }

  expect_failures = [trainyard_group.this]
}

run "log_dir_that_parameter_servers_lose" {
  command = plan

  variables {
    cluster = { name = "lab", engine = "systemd" }
    ps      = { image = "trainer:1" }
    worker  = { image = "trainer:1", mounts = [{ source = "/srv/logs", target = "/srv/logs" }] }
    log_dir = "/srv/logs"
  }

  expect_failures = [trainyard_group.this]
}

run "log_dir_that_the_coordinator_loses" {
  command = plan

  variables {
    cluster   = { name = "lab", engine = "swarm" }
    framework = "tensorflow"
    image     = "trainer:1"
    ps        = { mounts = [{ source = "/srv/logs", target = "/srv/logs" }] }
    worker    = { mounts = [{ source = "/srv/logs", target = "/srv/logs" }] }
    log_dir   = "/srv/logs"
  }

  expect_failures = [trainyard_group.this]
}

run "log_dir_of_members_with_a_mount" {
  command = plan

  variables {
    cluster = { name = "lab", engine = "swarm" }
    image   = "trainer:1"
    ps      = { mounts = [{ source = "/srv", target = "/srv" }] }
    worker  = { mounts = [{ type = "volume", source = "logs", target = "/srv/logs" }] }
    log_dir = "/srv/logs"
  }
}

run "log_dir_that_tensorboard_does_not_see" {
  command = plan

  variables {
    cluster     = { name = "lab", engine = "systemd" }
    log_dir     = "/srv/logs"
    tensorboard = { image = "tensorboard:1" }
  }

  expect_failures = [trainyard_group.tensorboard]
}

run "log_dir_in_memory" {
  command = plan

  variables {
    cluster = { name = "lab", engine = "swarm" }
    image   = "trainer:1"
    log_dir = "/srv/logs/mnist"
    mounts  = [{ type = "tmpfs", target = "/srv/logs/" }, { source = "/srv", target = "/srv" }]
  }

  expect_failures = [trainyard_group.this]
}

run "log_dir_on_storage_in_memory" {
  command = plan

  variables {
    cluster     = { name = "lab", engine = "swarm" }
    image       = "trainer:1"
    log_dir     = "/srv/logs/mnist"
    mounts      = [{ type = "volume", source = "logs", target = "/srv/logs/" }, { type = "tmpfs", target = "/srv" }]
    tensorboard = {}
  }
}

run "log_dir_that_is_read_only" {
  command = plan

  variables {
    cluster = { name = "lab", engine = "swarm" }
    image   = "trainer:1"
    log_dir = "/srv/logs"
    mounts  = [{ source = "/srv", target = "/srv", read_only = true }]
  }

  expect_failures = [trainyard_group.this]
}

run "log_dir_that_tensorboard_only_reads" {
  command = plan

  variables {
    cluster     = { name = "lab", engine = "systemd" }
    log_dir     = "/srv/logs"
    mounts      = [{ source = "/srv", target = "/srv", read_only = true }]
    tensorboard = { image = "tensorboard:1" }
  }
}

run "log_dir_that_tensorboard_has_in_memory" {
  command = plan

  variables {
    cluster     = { name = "lab", engine = "systemd" }
    log_dir     = "/srv/logs"
    mounts      = [{ source = "/srv", target = "/srv" }, { type = "tmpfs", target = "/srv/logs" }]
    tensorboard = { image = "tensorboard:1" }
  }

  expect_failures = [trainyard_group.tensorboard]
}

run "log_dir_that_a_program_mounts_itself" {
  command = plan

  variables {
    cluster     = { name = "lab", engine = "swarm" }
    image       = "trainer:1"
    command     = ["/mount-and-train"]
    log_dir     = "/srv/logs"
    tensorboard = {}
  }
}

run "log_dir_that_parameter_servers_only_read" {
  command = plan

  variables {
    cluster = { name = "lab", engine = "swarm" }
    image   = "trainer:1"
    ps      = { mounts = [{ source = "/srv/logs", target = "/srv/logs", read_only = true }] }
    mounts  = [{ source = "/srv", target = "/srv" }]
    log_dir = "/srv/logs"
  }

  expect_failures = [trainyard_group.this]
}
