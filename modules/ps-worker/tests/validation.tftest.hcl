# Invalid values are reported at plan time.
# A run that breaks several variables expects all failures.

mock_provider "trainyard" {
  mock_resource "trainyard_files" {
    defaults = { path = "/srv/files" }
  }
}

variables {
  cluster = { name = "lab" }
}

run "unknown_engine" {
  command = plan

  variables {
    cluster = { name = "lab", engine = "kubernetes" }
  }

  expect_failures = [var.cluster]
}

run "names_that_are_not_allowed" {
  command = plan

  variables {
    cluster       = { name = "lab", engine = "systemd" }
    name          = "MNIST"
    framework     = "tensorflow"
    env           = { TRAINYARD_HOST = "gpu1" }
    secrets       = { "the token" = { version = "1" } }
    secret_values = { "the token" = "hunter2" }
    ps            = { env = { "1A" = "x" } }
    worker        = { env = { TRAINYARD_HOST = "x" } }
    chief         = { env = { "A-B" = "x" } }
  }

  expect_failures = [var.name, var.env, var.secrets, var.ps, var.worker, var.chief]
}

run "unknown_choices" {
  command = plan

  variables {
    cluster       = { name = "lab", engine = "systemd" }
    framework     = "pytorch"
    secrets       = { token = { version = "1", mode = "rw-r--r--" } }
    secret_values = { token = "hunter2" }
    mounts        = [{ type = "nfs", target = "/data" }]
    wait_for      = "accurate"
  }

  expect_failures = [var.framework, var.secrets, var.mounts, var.wait_for]
}

run "relative_paths" {
  command = plan

  variables {
    cluster       = { name = "lab", engine = "systemd" }
    python        = "bin/python3"
    secrets       = { token = { version = "1", target = "token" } }
    secret_values = { token = "hunter2" }
    mounts        = [{ source = "/srv/data", target = "data" }]
    log_dir       = "logs"
  }

  expect_failures = [var.python, var.secrets, var.mounts, var.log_dir]
}

run "malformed_texts" {
  command = plan

  variables {
    cluster       = { name = "lab", engine = "systemd" }
    name          = "a23456789-123456789-123456789-123456789-123456" # too long
    python        = "python3 -O"
    secrets       = { token = { version = "1", target = "/" } } # the root
    secret_values = { token = "hunter2" }
    log_dir       = "/srv/logs"
    autoscale     = { max = 4, pattern = "loss" } # without the group step
  }

  expect_failures = [var.name, var.python, var.secrets, var.autoscale]
}

run "empty_texts" {
  command = plan

  variables {
    cluster       = { name = "lab", engine = "systemd" }
    framework     = "tensorflow"
    secrets       = { token = { version = " " } }
    secret_values = { token = "hunter2" }
    ps            = { image = "" }
    worker        = { image = "" }
    chief         = { image = "" }
  }

  expect_failures = [var.secrets, var.ps, var.worker, var.chief]
}

run "nothing_to_run" {
  command = plan

  variables {
    image       = " "
    command     = []
    log_dir     = "/srv/logs"
    tensorboard = { command = [] }
  }

  expect_failures = [var.image, var.command, var.tensorboard]
}

run "no_members" {
  command = plan

  variables {
    ps     = { replicas = 0 }
    worker = { replicas = 0 }
  }

  expect_failures = [var.ps, var.worker]
}

run "counts_below_one" {
  command = plan

  variables {
    batch_size   = 0
    hidden_units = 0
    train_steps  = -1
    log_dir      = "/srv/logs"
    autoscale    = { min = 0, max = 4 }
  }

  expect_failures = [var.batch_size, var.hidden_units, var.train_steps, var.autoscale]
}

run "rates_not_above_zero" {
  command = plan

  variables {
    learning_rate = -0.1
    log_dir       = "/srv/logs"
    autoscale     = { max = 4, threshold = 0 }
  }

  expect_failures = [var.learning_rate, var.autoscale]
}

run "fractional_numbers" {
  command = plan

  variables {
    worker       = { replicas = 1.5 }
    max_restarts = 0.5
    priority     = 0.5
  }

  expect_failures = [var.worker, var.max_restarts, var.priority]
}

run "invalid_ports" {
  command = plan

  variables {
    framework   = "tensorflow"
    ps          = { port = 65536 }
    worker      = { port = 9000.5 }
    chief       = { port = 0 }
    log_dir     = "/srv/logs"
    tensorboard = { port = 0 }
  }

  expect_failures = [var.ps, var.worker, var.chief, var.tensorboard]
}

run "malformed_durations" {
  command = plan

  variables {
    train_steps  = 2000
    deadline     = "2d"
    grace_period = "10"
    timeouts     = { create = "10" }
    log_dir      = "/srv/logs"
    autoscale    = { max = 4, settle = "1d" }
  }

  expect_failures = [var.deadline, var.grace_period, var.timeouts, var.autoscale]
}

run "settings_without_what_they_need" {
  command = plan

  variables {
    files         = "."                   # without command
    args          = ["--verbose"]         # without command
    secret_values = { token = "hunter2" } # without secrets
    autoscale     = { max = 4 }           # without log_dir
    tensorboard   = {}                    # without log_dir
  }

  expect_failures = [var.files, var.args, var.secret_values, var.autoscale, var.tensorboard]
}

run "no_gpus_and_no_value_of_a_secret" {
  command = plan

  variables {
    cluster       = { name = "lab", engine = "systemd" }
    secrets       = { token = { version = "1" } }
    secret_values = {}
    worker        = { gpus = { pool = "v100", count = 0 } }
  }

  expect_failures = [var.secret_values, var.worker]
}

run "policy_with_replicas_and_a_wait_for_the_end" {
  command = plan

  variables {
    worker      = { replicas = 2 }
    train_steps = 2000
    wait_for    = "completed"
    log_dir     = "/srv/logs"
    autoscale   = { max = 4 }
  }

  expect_failures = [var.worker, var.wait_for]
}

run "policy_to_less_than_from" {
  command = plan

  variables {
    log_dir   = "/srv/logs"
    autoscale = { min = 4, max = 2 }
  }

  expect_failures = [var.autoscale]
}

run "end_of_a_service_and_chief_of_version_1" {
  command = plan

  variables {
    chief    = { resources = { cpus = 1 } }
    wait_for = "completed"
    deadline = "2h"
  }

  expect_failures = [var.chief, var.wait_for, var.deadline]
}

run "settings_that_do_not_fit" {
  command = plan

  variables {
    secrets       = { token = { version = "1" } } # of processes
    secret_values = { token = "hunter2" }
    worker        = { gpus = { pool = "v100", count = 2 } } # more than the module's program uses
    chief         = { port = 7001 }                         # of tensorflow_v1
    log_dir       = "/srv/logs"
    tensorboard   = { published_port = 80 } # of processes
  }

  expect_failures = [var.secrets, var.worker, var.chief, var.tensorboard]
}

run "mistakes_on_a_swarm" {
  command = plan

  variables {
    cluster     = { name = "lab", engine = "swarm" } # without image
    files       = "."
    command     = ["python3", "train.py"]
    log_dir     = "/srv/logs"
    tensorboard = { published_port = 0 }
  }

  expect_failures = [var.files, var.image, var.tensorboard]
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
