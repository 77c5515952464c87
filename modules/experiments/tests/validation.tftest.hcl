# Invalid values are reported at plan time.

mock_provider "trainyard" {}

variables {
  cluster = { name = "lab" }
  seeds   = range(2)
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
    name = "Pricing"
  }

  expect_failures = [var.name]
}

run "started_by_nobody" {
  command = plan

  variables {
    started_by = " "
  }

  expect_failures = [var.started_by]
}

run "files_on_a_swarm" {
  command = plan

  variables {
    cluster = { name = "lab", engine = "swarm" }
    image   = "rl:1"
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
    args = ["--fast"]
  }

  expect_failures = [var.args]
}

run "reserved_env" {
  command = plan

  variables {
    env = { TRAINYARD_RUN = "a" }
  }

  expect_failures = [var.env]
}

run "env_with_a_hyphen" {
  command = plan

  variables {
    env = { "A-B" = "a" }
  }

  expect_failures = [var.env]
}

run "mount_at_a_relative_path" {
  command = plan

  variables {
    mounts = [{ source = "/srv", target = "srv" }]
  }

  expect_failures = [var.mounts]
}

run "mount_of_no_type" {
  command = plan

  variables {
    mounts = [{ type = "disk", source = "/srv", target = "/srv" }]
  }

  expect_failures = [var.mounts]
}

run "nobody_at_a_time" {
  command = plan

  variables {
    max_parallel = 0
  }

  expect_failures = [var.max_parallel]
}

run "progress_above_one" {
  command = plan

  variables {
    progress = { threshold = 2 }
  }

  expect_failures = [var.progress]
}

run "progress_that_settles_in_days" {
  command = plan

  variables {
    progress = { settle = "1d" }
  }

  expect_failures = [var.progress]
}

run "progress_of_nothing" {
  command = plan

  variables {
    progress = { pattern = "" }
  }

  expect_failures = [var.progress]
}

run "less_than_no_memory" {
  command = plan

  variables {
    resources = { memory_mib = -1 }
  }

  expect_failures = [var.resources]
}

run "gpus_of_no_pool" {
  command = plan

  variables {
    gpus = { pool = "" }
  }

  expect_failures = [var.gpus]
}

run "gpus_without_memory" {
  command = plan

  variables {
    gpus = { pool = "a40", memory_mib = 0 }
  }

  expect_failures = [var.gpus]
}

run "no_gpus" {
  command = plan

  variables {
    gpus = { pool = "a40", count = 0 }
  }

  expect_failures = [var.gpus]
}

run "reserve_of_all" {
  command = plan

  variables {
    admission = { reserve_percent = 100 }
  }

  expect_failures = [var.admission]
}

run "settle_without_a_unit" {
  command = plan

  variables {
    admission = { settle = "20" }
  }

  expect_failures = [var.admission]
}

run "free_memory_of_no_size" {
  command = plan

  variables {
    admission = { free_memory = true }
  }

  expect_failures = [var.admission]
}

run "placement_at_random" {
  command = plan

  variables {
    placement = { strategy = "random" }
  }

  expect_failures = [var.placement]
}

run "attempts_in_parts" {
  command = plan

  variables {
    retry = { max_attempts = 0.5 }
  }

  expect_failures = [var.retry]
}

run "delay_without_a_unit" {
  command = plan

  variables {
    retry = { delay = "5" }
  }

  expect_failures = [var.retry]
}

run "out_of_memory_never" {
  command = plan

  variables {
    retry = { out_of_memory = 0 }
  }

  expect_failures = [var.retry]
}

run "failure_of_nobody" {
  command = plan

  variables {
    on_failure = { after = 0 }
  }

  expect_failures = [var.on_failure]
}

run "failure_then_restart" {
  command = plan

  variables {
    on_failure = { after = 1, then = "restart" }
  }

  expect_failures = [var.on_failure]
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

run "rerun_of_none" {
  command = plan

  variables {
    rerun = "none"
  }

  expect_failures = [var.rerun]
}

run "triggers_of_nothing" {
  command = plan

  variables {
    triggers = { again = "1" }
  }

  expect_failures = [var.triggers]
}

run "wait_for_running" {
  command = plan

  variables {
    wait_for = "running"
  }

  expect_failures = [var.wait_for]
}

run "timeout_without_a_unit" {
  command = plan

  variables {
    timeouts = { create = "10" }
  }

  expect_failures = [var.timeouts]
}

run "objective_without_a_group" {
  command = plan

  variables {
    objective = { pattern = "reward" }
  }

  expect_failures = [var.objective]
}

run "objective_to_hold" {
  command = plan

  variables {
    objective = { pattern = "reward=(.*)", goal = "hold" }
  }

  expect_failures = [var.objective]
}

run "relative_results_on_a_swarm" {
  command = plan

  variables {
    cluster = { name = "lab", engine = "swarm" }
    image   = "rl:1"
    results = { path = "results" }
  }

  expect_failures = [var.results]
}

run "results_moved" {
  command = plan

  variables {
    results = { on_destroy = "move" }
  }

  expect_failures = [var.results]
}

run "results_collected_nowhere" {
  command = plan

  variables {
    results = { collect_to = "" }
  }

  expect_failures = [var.results]
}
