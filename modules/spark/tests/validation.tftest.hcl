# Invalid values are reported at plan time.
# A run that breaks several variables expects all failures.

mock_provider "trainyard" {}

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
    name   = "Spark"
    env    = { TRAINYARD_HOST = "x" }
    master = { env = { "A-B" = "x" } }
  }

  expect_failures = [var.name, var.env, var.master]
}

run "env_that_the_module_sets" {
  command = plan

  variables {
    env    = { SPARK_WORKER_OPTS = "-Dspark.worker.cleanup.interval=60" }
    master = { env = { SPARK_MASTER_OPTS = "-Dspark.deploy.spreadOut=false" } }
  }

  expect_failures = [var.env, var.master]
}

run "malformed_texts" {
  command = plan

  variables {
    name     = "a23456789-123456789-123456789-123456789-1234567890" # too long
    image    = " "
    bin      = "/opt/my spark"
    python   = "python3 -u"
    conf     = { "hadoop.home" = "/opt" }
    master   = { conf = { "spark.deploy.spreadOut" = "a b" } }
    timeouts = { create = "1d" }
  }

  expect_failures = [var.name, var.image, var.bin, var.python, var.conf, var.master, var.timeouts]
}

run "relative_paths" {
  command = plan

  variables {
    bin         = "spark/bin"
    mounts      = [{ source = "/data", target = "data" }]
    master      = { recovery_dir = "recovery" }
    history     = { dir = "events" }
    shuffle_dir = "shuffle"
  }

  expect_failures = [var.bin, var.mounts, var.master, var.history, var.shuffle_dir]
}

run "malformed_mounts" {
  command = plan

  variables {
    mounts = [{ type = "nfs", target = "/data" }]
    master = { mounts = [{ target = "data", type = "tmpfs" }] }
  }

  expect_failures = [var.mounts, var.master]
}

run "invalid_ports" {
  command = plan

  variables {
    master  = { port = 0 }
    history = { dir = "/srv/events", port = 0 }
  }

  expect_failures = [var.master, var.history]
}

run "numbers_out_of_range" {
  command = plan

  variables {
    master   = { web_port = 70000 }
    priority = 0.5
  }

  expect_failures = [var.master, var.priority]
}

run "master_and_page_at_one_port" {
  command = plan

  variables {
    master = { port = 7077, web_port = 7077 }
  }

  expect_failures = [var.master]
}

run "heaps_too_small" {
  command = plan

  variables {
    master  = { daemon_memory_mib = 1 }
    history = { dir = "/srv/events", daemon_memory_mib = 1.5 }
  }

  expect_failures = [var.master, var.history]
}

run "published_by_processes" {
  command = plan

  variables {
    master  = { published_port = 8080 }
    history = { dir = "/srv/events", published_port = 80 }
  }

  expect_failures = [var.master, var.history]
}

run "mistakes_on_a_swarm" {
  command = plan

  variables {
    cluster = { name = "lab", engine = "swarm" } # without image
    master  = { published_port = 0 }
    history = { dir = "/srv/events", published_port = 0 }
  }

  expect_failures = [var.image, var.master, var.history]
}
