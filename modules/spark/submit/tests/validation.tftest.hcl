# Invalid values are reported at plan time.
# A run that breaks several variables expects all failures.

mock_provider "trainyard" {}

variables {
  spark = { cluster = { name = "lab" }, master = "spark://127.0.0.1:7077" }
}

run "master_without_a_port" {
  command = plan

  variables {
    spark = { cluster = { name = "lab" }, master = "spark://spark-master-0" }
  }

  expect_failures = [var.spark]
}

run "cluster_without_a_name_or_master" {
  command = plan

  variables {
    spark = { cluster = { name = "lab" }, master = null }
  }

  expect_failures = [var.spark]
}

run "swarm_without_an_image" {
  command = plan

  variables {
    spark = { cluster = { name = "lab", engine = "swarm" }, master = "spark://spark-master-0:7077" }
  }

  expect_failures = [var.spark]
}

run "names_that_are_not_allowed" {
  command = plan

  variables {
    name = "Train"
    env  = { TRAINYARD_HOST = "x" }
    conf = { "hadoop.home" = "/opt" }
  }

  expect_failures = [var.name, var.env, var.conf]
}

run "files_on_a_swarm" {
  command = plan

  variables {
    spark = { cluster = { name = "lab", engine = "swarm" }, master = "spark://spark-master-0:7077", runtime = { image = "spark:4" } }
    files = "."
  }

  expect_failures = [var.files]
}

run "unknown_choices" {
  command = plan

  variables {
    program  = "/srv/train.scala"
    driver   = { mounts = [{ target = "/data", type = "nfs" }] }
    wait_for = "nothing"
  }

  expect_failures = [var.program, var.driver, var.wait_for]
}

run "relative_paths" {
  command = plan

  variables {
    program = "train.py"
    driver  = { mounts = [{ target = "data", type = "tmpfs" }] }
  }

  expect_failures = [var.program, var.driver]
}

run "settings_that_do_not_fit" {
  command = plan

  variables {
    class = "org.example.Train" # of a program in Python
    args  = ["--rows", null]
    env   = { WORKERS = "4" } # that the module sets
  }

  expect_failures = [var.class, var.args, var.env]
}

run "numbers_out_of_range" {
  command = plan

  variables {
    workers  = 0
    executor = { cores = 0 }
    driver   = { port = 0 }
    retries  = 0.5
    priority = 0.5
  }

  expect_failures = [var.workers, var.executor, var.driver, var.retries, var.priority]
}

run "too_little_memory" {
  command = plan

  variables {
    executor = { memory_mib = 100 }
    driver   = { memory_mib = 100 }
  }

  expect_failures = [var.executor, var.driver]
}

run "malformed_durations" {
  command = plan

  variables {
    gang_timeout = "1d"
    deadline     = "1d"
    timeouts     = { create = "1d" }
  }

  expect_failures = [var.gang_timeout, var.deadline, var.timeouts]
}
