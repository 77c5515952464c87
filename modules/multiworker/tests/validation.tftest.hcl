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

run "reserved_names" {
  command = plan

  variables {
    env    = { TRAINYARD_HOST = "gpu1" }
    worker = { env = { TRAINYARD_HOST = "x" } }
  }

  expect_failures = [var.env, var.worker]
}

run "malformed_names" {
  command = plan

  variables {
    cluster       = { name = "lab", engine = "systemd" }
    secrets       = { "the token" = { version = "1" } }
    secret_values = { "the token" = "hunter2" }
    worker        = { env = { "1A" = "x" } }
  }

  expect_failures = [var.secrets, var.worker]
}

run "malformed_texts" {
  command = plan

  variables {
    cluster       = { name = "lab", engine = "systemd" }
    name          = "MNIST"
    python        = "python3 -O"
    secrets       = { token = { version = "1", target = "/" } } # the root
    secret_values = { token = "hunter2" }
    initial_model = "/srv/model.h5" # another format
  }

  expect_failures = [var.name, var.python, var.secrets, var.initial_model]
}

run "unknown_choices" {
  command = plan

  variables {
    cluster       = { name = "lab", engine = "systemd" }
    secrets       = { token = { version = "1", mode = "rw-r--r--" } }
    secret_values = { token = "hunter2" }
    mounts        = [{ type = "nfs", target = "/data" }]
    wait_for      = "accurate"
  }

  expect_failures = [var.secrets, var.mounts, var.wait_for]
}

run "relative_paths" {
  command = plan

  variables {
    cluster       = { name = "lab", engine = "systemd" }
    python        = "bin/python3"
    secrets       = { token = { version = "1", target = "token" } }
    secret_values = { token = "hunter2" }
    mounts        = [{ source = "/srv/data", target = "data" }]
    initial_model = "model.keras"
    model_dir     = "models"
    log_dir       = "logs"
  }

  expect_failures = [var.python, var.secrets, var.mounts, var.initial_model, var.model_dir, var.log_dir]
}

run "empty_command_and_version" {
  command = plan

  variables {
    cluster       = { name = "lab", engine = "systemd" }
    command       = []
    secrets       = { token = { version = " " } }
    secret_values = { token = "hunter2" }
  }

  expect_failures = [var.command, var.secrets]
}

run "name_too_long_and_nothing_to_run" {
  command = plan

  variables {
    name        = "a23456789-123456789-123456789-123456789-123456"
    image       = " "
    log_dir     = "/srv/logs"
    tensorboard = { command = [] }
  }

  expect_failures = [var.name, var.image, var.tensorboard]
}

run "numbers_too_small" {
  command = plan

  variables {
    worker        = { replicas = 0 }
    batch_size    = 0
    epochs        = 0
    learning_rate = -0.1
    seed          = -1
  }

  expect_failures = [var.worker, var.batch_size, var.epochs, var.learning_rate, var.seed]
}

run "fractions_and_no_time" {
  command = plan

  variables {
    worker          = { replicas = 1.5 }
    steps_per_epoch = 0.5
    max_restarts    = 0.5
    priority        = 0.5
    join_timeout    = "0s"
  }

  expect_failures = [var.worker, var.steps_per_epoch, var.max_restarts, var.priority, var.join_timeout]
}

run "invalid_ports" {
  command = plan

  variables {
    worker      = { port = 5001.5 }
    log_dir     = "/srv/logs"
    tensorboard = { port = 0 }
  }

  expect_failures = [var.worker, var.tensorboard]
}

run "malformed_durations" {
  command = plan

  variables {
    join_timeout = "1d"
    deadline     = "2d"
    grace_period = "10"
    timeouts     = { create = "10" }
  }

  expect_failures = [var.join_timeout, var.deadline, var.grace_period, var.timeouts]
}

run "settings_without_what_they_need" {
  command = plan

  variables {
    files         = "."                                     # without command
    args          = ["--verbose"]                           # without command
    secret_values = { token = "hunter2" }                   # without secrets
    worker        = { gpus = { pool = "v100", count = 2 } } # more than the module's program uses
    tensorboard   = {}                                      # without log_dir
  }

  expect_failures = [var.files, var.args, var.secret_values, var.worker, var.tensorboard]
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

run "settings_of_other_engines" {
  command = plan

  variables {
    network       = {}
    secrets       = { token = { version = "1" } }
    secret_values = { token = "hunter2" }
    log_dir       = "/srv/logs"
    tensorboard   = { published_port = 80 }
  }

  expect_failures = [var.network, var.secrets, var.tensorboard]
}

run "mistakes_on_a_swarm" {
  command = plan

  variables {
    cluster     = { name = "lab", engine = "swarm" } # without image
    network     = { subnet = "10.10.0.0" }
    files       = "."
    command     = ["python3", "train.py"]
    log_dir     = "/srv/logs"
    tensorboard = { published_port = 0 }
  }

  expect_failures = [var.network, var.files, var.image, var.tensorboard]
}

run "network_of_a_name_too_long" {
  command = plan

  variables {
    cluster = { name = "lab-of-the-institute-of-everything", engine = "swarm" }
    image   = "trainer:1"
    name    = "a-training-that-has-a-long-name"
    network = {}
  }

  expect_failures = [var.network]
}

run "gpus_of_another_cluster" {
  command = plan

  variables {
    cluster = { name = "lab", engine = "swarm" }
    image   = "trainer:1"
    network = {}
    worker  = { gpus = { pool = "v100" } }
  }

  expect_failures = [var.worker]
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

run "model_that_containers_on_bare_hosts_lose" {
  command = plan

  variables {
    cluster   = { name = "lab", engine = "systemd" }
    image     = "trainer:1"
    log_dir   = "/srv/logs"
    model_dir = "/models"
    mounts    = [{ source = "/srv", target = "/srv/" }]
  }

  expect_failures = [trainyard_group.this]
}

run "log_dir_that_tensorboard_does_not_see" {
  command = plan

  variables {
    cluster     = { name = "lab", engine = "swarm" }
    image       = "trainer:1"
    log_dir     = "/srv/logs"
    worker      = { mounts = [{ source = "/srv/logs", target = "/srv/logs" }] }
    tensorboard = {}
  }

  expect_failures = [trainyard_group.tensorboard]
}

run "log_dir_of_processes_with_an_image" {
  command = plan

  variables {
    image       = "trainer:1"
    log_dir     = "/srv/logs"
    model_dir   = "/srv/models"
    tensorboard = {}
  }
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
