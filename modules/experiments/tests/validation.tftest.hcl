# Invalid values are reported at plan time.
# A run that breaks several variables expects all failures.

mock_provider "trainyard" {}

variables {
  cluster = { name = "lab" }
  seeds   = range(2)
}

run "unknown_engine" {
  command = plan

  variables {
    cluster = { name = "lab", engine = "kubernetes" }
  }

  expect_failures = [var.cluster]
}

run "malformed_names_and_paths" {
  command = plan

  variables {
    name   = "Pricing"
    python = "bin/python3"
    env    = { "A-B" = "a" }
    mounts = [{ source = "/srv", target = "srv" }]
  }

  expect_failures = [var.name, var.python, var.env, var.mounts]
}

run "reserved_env" {
  command = plan

  variables {
    env = { TRAINYARD_RUN = "a" }
  }

  expect_failures = [var.env]
}

run "unknown_choices" {
  command = plan

  variables {
    mounts     = [{ type = "disk", source = "/srv", target = "/srv" }]
    placement  = { strategy = "random" }
    on_failure = { after = 1, then = "restart" }
    rerun      = "none"
    wait_for   = "running"
    objective  = { pattern = "reward=(.*)", goal = "hold" }
    results    = { on_destroy = "move" }
  }

  expect_failures = [var.mounts, var.placement, var.on_failure, var.rerun, var.wait_for, var.objective, var.results]
}

run "empty_texts" {
  command = plan

  variables {
    started_by = " "
    image      = " "
    command    = []
    progress   = { pattern = "" }
    gpus       = { pool = "" }
    results    = { collect_to = "" }
  }

  expect_failures = [var.started_by, var.image, var.command, var.progress, var.gpus, var.results]
}

run "numbers_too_small" {
  command = plan

  variables {
    max_parallel = 0
    resources    = { memory_mib = -1 }
    gpus         = { pool = "a40", memory_mib = 0 }
    retry        = { out_of_memory = 0 }
    on_failure   = { after = 0 }
  }

  expect_failures = [var.max_parallel, var.resources, var.gpus, var.retry, var.on_failure]
}

run "numbers_out_of_range" {
  command = plan

  variables {
    progress  = { threshold = 2 }
    gpus      = { pool = "a40", count = 0 }
    admission = { reserve_percent = 100 }
    retry     = { max_attempts = 0.5 }
    priority  = 0.5
  }

  expect_failures = [var.progress, var.gpus, var.admission, var.retry, var.priority]
}

run "malformed_durations" {
  command = plan

  variables {
    progress     = { settle = "1d" }
    admission    = { settle = "20" }
    retry        = { delay = "5" }
    grace_period = "10"
    timeouts     = { create = "10" }
  }

  expect_failures = [var.progress, var.admission, var.retry, var.grace_period, var.timeouts]
}

run "settings_without_what_they_need" {
  command = plan

  variables {
    files     = "."                    # without command
    args      = ["--fast"]             # without command
    admission = { free_memory = true } # without resources.memory_mib
    triggers  = { again = "1" }        # without rerun
    objective = { pattern = "reward" } # without a group
  }

  expect_failures = [var.files, var.args, var.admission, var.triggers, var.objective]
}

run "mistakes_on_a_swarm" {
  command = plan

  variables {
    cluster = { name = "lab", engine = "swarm" } # without image
    files   = "."
    command = ["python3", "train.py"]
    results = { path = "results" }
  }

  expect_failures = [var.files, var.image, var.results]
}
