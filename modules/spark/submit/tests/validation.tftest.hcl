# Invalid values are reported at plan time.

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

run "name_in_capitals" {
  command = plan

  variables {
    name = "Train"
  }

  expect_failures = [var.name]
}

run "files_on_a_swarm" {
  command = plan

  variables {
    spark = { cluster = { name = "lab", engine = "swarm" }, master = "spark://spark-master-0:7077", runtime = { image = "spark:4" } }
    files = "."
  }

  expect_failures = [var.files]
}

run "program_of_another_language" {
  command = plan

  variables {
    program = "/srv/train.scala"
  }

  expect_failures = [var.program]
}

run "program_that_nobody_has" {
  command = plan

  variables {
    program = "train.py"
  }

  expect_failures = [var.program]
}

run "class_of_python" {
  command = plan

  variables {
    class = "org.example.Train"
  }

  expect_failures = [var.class]
}

run "arg_that_is_null" {
  command = plan

  variables {
    args = ["--rows", null]
  }

  expect_failures = [var.args]
}

run "env_that_is_reserved" {
  command = plan

  variables {
    env = { TRAINYARD_HOST = "x" }
  }

  expect_failures = [var.env]
}

run "conf_of_others" {
  command = plan

  variables {
    conf = { "hadoop.home" = "/opt" }
  }

  expect_failures = [var.conf]
}

run "no_workers" {
  command = plan

  variables {
    workers = 0
  }

  expect_failures = [var.workers]
}

run "executor_without_cores" {
  command = plan

  variables {
    executor = { cores = 0 }
  }

  expect_failures = [var.executor]
}

run "executor_with_too_little_memory" {
  command = plan

  variables {
    executor = { memory_mib = 100 }
  }

  expect_failures = [var.executor]
}

run "driver_with_too_little_memory" {
  command = plan

  variables {
    driver = { memory_mib = 100 }
  }

  expect_failures = [var.driver]
}

run "driver_at_no_port" {
  command = plan

  variables {
    driver = { port = 0 }
  }

  expect_failures = [var.driver]
}

run "driver_mount_that_is_relative" {
  command = plan

  variables {
    driver = { mounts = [{ target = "data", type = "tmpfs" }] }
  }

  expect_failures = [var.driver]
}

run "driver_mount_of_no_type" {
  command = plan

  variables {
    driver = { mounts = [{ target = "/data", type = "nfs" }] }
  }

  expect_failures = [var.driver]
}

run "gang_that_waits_for_days" {
  command = plan

  variables {
    gang_timeout = "1d"
  }

  expect_failures = [var.gang_timeout]
}

run "wait_for_nothing" {
  command = plan

  variables {
    wait_for = "nothing"
  }

  expect_failures = [var.wait_for]
}

run "deadline_in_days" {
  command = plan

  variables {
    deadline = "1d"
  }

  expect_failures = [var.deadline]
}

run "retries_by_halves" {
  command = plan

  variables {
    retries = 0.5
  }

  expect_failures = [var.retries]
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

run "env_that_the_module_sets" {
  command = plan

  variables {
    env = { WORKERS = "4" }
  }

  expect_failures = [var.env]
}
