# Invalid values for workers, their GPUs and their policy are reported at plan time.
# A run that breaks several variables expects all failures.

mock_provider "trainyard" {}

variables {
  cluster = { name = "lab" }
}

run "workers_by_halves" {
  command = plan

  variables {
    worker = { replicas = 1.5 }
  }

  expect_failures = [var.worker]
}

run "worker_without_cores" {
  command = plan

  variables {
    worker = { cores = 0 }
  }

  expect_failures = [var.worker]
}

run "worker_with_too_little_memory" {
  command = plan

  variables {
    worker = { memory_mib = 100 }
  }

  expect_failures = [var.worker]
}

run "worker_at_no_port" {
  command = plan

  variables {
    worker = { port = 0 }
  }

  expect_failures = [var.worker]
}

run "worker_page_at_no_port" {
  command = plan

  variables {
    worker = { web_port = -1 }
  }

  expect_failures = [var.worker]
}

run "worker_scratch_that_is_relative" {
  command = plan

  variables {
    worker = { scratch_dir = "tmp" }
  }

  expect_failures = [var.worker]
}

run "worker_grace_period_in_days" {
  command = plan

  variables {
    worker = { grace_period = "1d" }
  }

  expect_failures = [var.worker]
}

run "worker_image_without_a_name" {
  command = plan

  variables {
    worker = { image = "" }
  }

  expect_failures = [var.worker]
}

run "worker_conf_with_quotes" {
  command = plan

  variables {
    worker = { conf = { "spark.worker.ui.x" = "\"" } }
  }

  expect_failures = [var.worker]
}

run "worker_without_a_heap" {
  command = plan

  variables {
    worker = { daemon_memory_mib = 0 }
  }

  expect_failures = [var.worker]
}

run "worker_env_that_is_reserved" {
  command = plan

  variables {
    worker = { env = { TRAINYARD_PORT = "1" } }
  }

  expect_failures = [var.worker]
}

run "worker_env_that_the_module_sets" {
  command = plan

  variables {
    worker = { env = { SPARK_WORKER_OPTS = "-Dspark.worker.cleanup.interval=60" } }
  }

  expect_failures = [var.worker]
}

run "worker_env_of_the_heap" {
  command = plan

  variables {
    worker = { env = { SPARK_DAEMON_MEMORY = "1g" } }
  }

  expect_failures = [var.worker]
}

run "worker_env_of_scratch" {
  command = plan

  variables {
    worker = { env = { SPARK_LOCAL_DIRS = "/mnt/nvme" } }
  }

  expect_failures = [var.worker]
}

run "worker_with_no_gpu" {
  command = plan

  variables {
    worker = { gpus = { pool = "v100", count = 0 } }
  }

  expect_failures = [var.worker]
}

run "task_with_two_thirds_of_a_gpu" {
  command = plan

  variables {
    worker = { gpus = { pool = "v100", per_task = 0.66 } }
  }

  expect_failures = [var.worker]
}

run "task_with_more_gpus_than_a_worker" {
  command = plan

  variables {
    worker = { gpus = { pool = "v100", count = 2, per_task = 3 } }
  }

  expect_failures = [var.worker]
}

run "task_with_more_gpus_than_one" {
  command = plan

  variables {
    worker = { gpus = { pool = "v100", per_task = 2 } }
  }

  expect_failures = [var.worker]
}

run "worker_mount_of_no_type" {
  command = plan

  variables {
    worker = { mounts = [{ type = "nfs", target = "/data" }] }
  }

  expect_failures = [var.worker]
}

run "policy_from_less_than_nobody" {
  command = plan

  variables {
    autoscale = { min = -1, max = 4 }
  }

  expect_failures = [var.autoscale]
}

run "policy_to_less_than_from" {
  command = plan

  variables {
    autoscale = { min = 4, max = 2 }
  }

  expect_failures = [var.autoscale]
}

run "policy_with_larger_gangs_than_workers" {
  command = plan

  variables {
    autoscale = { max = 4, workers_per_application = 5 }
  }

  expect_failures = [var.autoscale]
}

run "application_and_memory_of_rapids_too_large" {
  command = plan

  variables {
    worker    = { gpus = { pool = "v100" } }
    autoscale = { max = 4, applications = { fares = 8 } }
    rapids    = { jar = "/opt/rapids.jar", alloc_fraction = 2 }
  }

  expect_failures = [var.autoscale, var.rapids]
}

run "application_without_a_name_and_rapids_without_a_jar" {
  command = plan

  variables {
    worker    = { gpus = { pool = "v100" } }
    autoscale = { max = 4, applications = { "the fares" = 2 } }
    rapids    = { jar = "/opt/rapids" }
  }

  expect_failures = [var.autoscale, var.rapids]
}

run "policy_that_is_idle_for_days_and_rapids_with_a_pool_of_its_own" {
  command = plan

  variables {
    worker    = { gpus = { pool = "v100" } }
    autoscale = { max = 4, idle = "1d" }
    rapids    = { jar = "/opt/rapids.jar", pool = "MINE" }
  }

  expect_failures = [var.autoscale, var.rapids]
}

run "policy_without_decisions_and_invalid_rapids_debug" {
  command = plan

  variables {
    worker    = { gpus = { pool = "v100" } }
    autoscale = { max = 4, interval = "never" }
    rapids    = { jar = "/opt/rapids.jar", debug = "ALL" }
  }

  expect_failures = [var.autoscale, var.rapids]
}

run "policy_that_cools_down_for_days" {
  command = plan

  variables {
    worker    = { resources = { cpus = 1 } }
    autoscale = { max = 4, heat = { cooldown = "1d" } }
  }

  expect_failures = [var.autoscale]
}

run "policy_with_heat_upside_down" {
  command = plan

  variables {
    worker    = { resources = { cpus = 1 } }
    autoscale = { max = 4, heat = { lower = 60, upper = 20 } }
  }

  expect_failures = [var.autoscale]
}

run "policy_with_heat_that_never_recurs" {
  command = plan

  variables {
    worker    = { resources = { cpus = 1 } }
    autoscale = { max = 4, heat = { recurrence = 0 } }
  }

  expect_failures = [var.autoscale]
}

run "policy_with_heat_of_nothing" {
  command = plan

  variables {
    autoscale = { max = 4, heat = {} }
  }

  expect_failures = [var.autoscale]
}

run "policy_that_recommends_nothing_and_rapids_without_gpus" {
  command = plan

  variables {
    autoscale = { max = 4, vertical = {} }
    rapids    = { jar = "/opt/rapids.jar" }
  }

  expect_failures = [var.autoscale, var.rapids]
}

run "policy_that_recommends_upside_down" {
  command = plan

  variables {
    autoscale = { max = 4, vertical = { cpus = { min = 1, max = 4 }, memory_mib = { min = 4096, max = 1024 } } }
  }

  expect_failures = [var.autoscale]
}

run "policy_that_recommends_half_a_mebibyte" {
  command = plan

  variables {
    autoscale = { max = 4, vertical = { memory_mib = { min = 1024, max = 2048.5 } } }
  }

  expect_failures = [var.autoscale]
}

run "policy_and_replicas" {
  command = plan

  variables {
    worker    = { replicas = 2 }
    autoscale = { max = 4 }
  }

  expect_failures = [var.autoscale]
}
