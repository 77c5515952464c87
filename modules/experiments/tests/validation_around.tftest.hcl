# Invalid values for TensorBoard and hooks are reported at plan time.
# Only for Terraform: OpenTofu mocks in another way.

mock_provider "trainyard" {}

variables {
  cluster = { name = "lab" }
  seeds   = range(2)
}

run "tensorboard_of_nothing" {
  command = plan

  variables {
    tensorboard = {}
  }

  expect_failures = [var.tensorboard]
}

run "tensorboard_of_a_folder_of_each" {
  command = plan

  variables {
    results     = { path = "results" }
    tensorboard = {}
  }

  expect_failures = [var.tensorboard]
}

run "tensorboard_without_a_program" {
  command = plan

  variables {
    results     = { path = "/srv/results" }
    tensorboard = { command = [] }
  }

  expect_failures = [var.tensorboard]
}

run "tensorboard_at_no_port" {
  command = plan

  variables {
    results     = { path = "/srv/results" }
    tensorboard = { port = 0 }
  }

  expect_failures = [var.tensorboard]
}

run "tensorboard_published_by_processes" {
  command = plan

  variables {
    results     = { path = "/srv/results" }
    tensorboard = { published_port = 80 }
  }

  expect_failures = [var.tensorboard]
}

run "tensorboard_published_at_no_port" {
  command = plan

  variables {
    cluster     = { name = "lab", engine = "swarm" }
    image       = "rl:1"
    results     = { path = "/srv/results" }
    tensorboard = { published_port = 0 }
  }

  expect_failures = [var.tensorboard]
}

run "hook_of_nobody" {
  command = plan

  variables {
    on_finish = {}
  }

  expect_failures = [var.on_finish]
}

run "hook_of_two" {
  command = plan

  variables {
    on_finish = { url = "https://a.example", command = ["/notify"] }
  }

  expect_failures = [var.on_finish]
}

run "hook_without_a_scheme" {
  command = plan

  variables {
    on_finish = { url = "hooks.example.com" }
  }

  expect_failures = [var.on_finish]
}

run "secret_hook_without_a_scheme" {
  command = plan

  variables {
    on_finish = { url = sensitive("hooks.example.com/services/hunter2") }
  }

  expect_failures = [var.on_finish]
}

run "hook_program_on_a_swarm" {
  command = plan

  variables {
    cluster   = { name = "lab", engine = "swarm" }
    image     = "rl:1"
    on_finish = { command = ["/notify"] }
  }

  expect_failures = [var.on_finish]
}

run "hook_in_days" {
  command = plan

  variables {
    on_finish = { url = "https://a.example", timeout = "1d" }
  }

  expect_failures = [var.on_finish]
}
