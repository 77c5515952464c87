# Invalid values are reported at plan time.

mock_provider "trainyard" {}

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
    name = "Spark"
  }

  expect_failures = [var.name]
}

run "name_too_long" {
  command = plan

  variables {
    name = "a23456789-123456789-123456789-123456789-1234567890"
  }

  expect_failures = [var.name]
}

run "swarm_without_an_image" {
  command = plan

  variables {
    cluster = { name = "lab", engine = "swarm" }
  }

  expect_failures = [var.image]
}

run "image_without_a_name" {
  command = plan

  variables {
    image = " "
  }

  expect_failures = [var.image]
}

run "bin_that_is_relative" {
  command = plan

  variables {
    bin = "spark/bin"
  }

  expect_failures = [var.bin]
}

run "bin_with_a_space" {
  command = plan

  variables {
    bin = "/opt/my spark"
  }

  expect_failures = [var.bin]
}

run "python_with_arguments" {
  command = plan

  variables {
    python = "python3 -u"
  }

  expect_failures = [var.python]
}

run "env_that_is_reserved" {
  command = plan

  variables {
    env = { TRAINYARD_HOST = "x" }
  }

  expect_failures = [var.env]
}

run "env_that_the_module_sets" {
  command = plan

  variables {
    env = { SPARK_WORKER_OPTS = "-Dspark.worker.cleanup.interval=60" }
  }

  expect_failures = [var.env]
}

run "mount_that_is_relative" {
  command = plan

  variables {
    mounts = [{ source = "/data", target = "data" }]
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

run "conf_of_others" {
  command = plan

  variables {
    conf = { "hadoop.home" = "/opt" }
  }

  expect_failures = [var.conf]
}

run "master_at_no_port" {
  command = plan

  variables {
    master = { port = 0 }
  }

  expect_failures = [var.master]
}

run "master_without_a_page" {
  command = plan

  variables {
    master = { web_port = 70000 }
  }

  expect_failures = [var.master]
}

run "master_and_page_at_one_port" {
  command = plan

  variables {
    master = { port = 7077, web_port = 7077 }
  }

  expect_failures = [var.master]
}

run "master_published_by_processes" {
  command = plan

  variables {
    master = { published_port = 8080 }
  }

  expect_failures = [var.master]
}

run "master_published_at_no_port" {
  command = plan

  variables {
    cluster = { name = "lab", engine = "swarm" }
    image   = "spark:4"
    master  = { published_port = 0 }
  }

  expect_failures = [var.master]
}

run "master_recovers_from_a_relative_path" {
  command = plan

  variables {
    master = { recovery_dir = "recovery" }
  }

  expect_failures = [var.master]
}

run "master_conf_with_spaces" {
  command = plan

  variables {
    master = { conf = { "spark.deploy.spreadOut" = "a b" } }
  }

  expect_failures = [var.master]
}

run "master_without_a_heap" {
  command = plan

  variables {
    master = { daemon_memory_mib = 1 }
  }

  expect_failures = [var.master]
}

run "master_env_with_a_hyphen" {
  command = plan

  variables {
    master = { env = { "A-B" = "x" } }
  }

  expect_failures = [var.master]
}

run "master_env_that_the_module_sets" {
  command = plan

  variables {
    master = { env = { SPARK_MASTER_OPTS = "-Dspark.deploy.spreadOut=false" } }
  }

  expect_failures = [var.master]
}

run "master_mount_that_is_relative" {
  command = plan

  variables {
    master = { mounts = [{ target = "data", type = "tmpfs" }] }
  }

  expect_failures = [var.master]
}

run "history_at_a_relative_path" {
  command = plan

  variables {
    history = { dir = "events" }
  }

  expect_failures = [var.history]
}

run "history_at_no_port" {
  command = plan

  variables {
    history = { dir = "/srv/events", port = 0 }
  }

  expect_failures = [var.history]
}

run "history_without_a_heap" {
  command = plan

  variables {
    history = { dir = "/srv/events", daemon_memory_mib = 1.5 }
  }

  expect_failures = [var.history]
}

run "history_published_by_processes" {
  command = plan

  variables {
    history = { dir = "/srv/events", published_port = 80 }
  }

  expect_failures = [var.history]
}

run "history_published_at_no_port" {
  command = plan

  variables {
    cluster = { name = "lab", engine = "swarm" }
    image   = "spark:4"
    history = { dir = "/srv/events", published_port = 0 }
  }

  expect_failures = [var.history]
}

run "shuffle_at_a_relative_path" {
  command = plan

  variables {
    shuffle_dir = "shuffle"
  }

  expect_failures = [var.shuffle_dir]
}

run "priority_by_halves" {
  command = plan

  variables {
    priority = 0.5
  }

  expect_failures = [var.priority]
}

run "timeout_in_days" {
  command = plan

  variables {
    timeouts = { create = "1d" }
  }

  expect_failures = [var.timeouts]
}
