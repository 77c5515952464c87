# Invalid values for TensorBoard and hooks are reported at plan time.
# Each run breaks both, and both must be reported.
# Only for Terraform: OpenTofu mocks in another way.

mock_provider "trainyard" {}

variables {
  cluster = { name = "lab" }
  seeds   = range(2)
}

run "tensorboard_and_hook_of_nothing" {
  command = plan

  variables {
    tensorboard = {}
    on_finish   = {}
  }

  expect_failures = [var.tensorboard, var.on_finish]
}

run "tensorboard_of_a_folder_of_each_and_hook_of_two" {
  command = plan

  variables {
    results     = { path = "results" }
    tensorboard = {}
    on_finish   = { url = "https://a.example", command = ["/notify"] }
  }

  expect_failures = [var.tensorboard, var.on_finish]
}

run "tensorboard_without_a_program_and_hook_without_a_scheme" {
  command = plan

  variables {
    results     = { path = "/srv/results" }
    tensorboard = { command = [] }
    on_finish   = { url = "hooks.example.com" }
  }

  expect_failures = [var.tensorboard, var.on_finish]
}

run "tensorboard_at_no_port_and_secret_hook_without_a_scheme" {
  command = plan

  variables {
    results     = { path = "/srv/results" }
    tensorboard = { port = 0 }
    on_finish   = { url = sensitive("hooks.example.com/services/hunter2") }
  }

  expect_failures = [var.tensorboard, var.on_finish]
}

run "tensorboard_published_by_processes_and_hook_in_days" {
  command = plan

  variables {
    results     = { path = "/srv/results" }
    tensorboard = { published_port = 80 }
    on_finish   = { url = "https://a.example", timeout = "1d" }
  }

  expect_failures = [var.tensorboard, var.on_finish]
}

run "tensorboard_published_at_no_port_and_hook_program_on_a_swarm" {
  command = plan

  variables {
    cluster     = { name = "lab", engine = "swarm" }
    image       = "rl:1"
    results     = { path = "/srv/results" }
    tensorboard = { published_port = 0 }
    on_finish   = { command = ["/notify"] }
  }

  expect_failures = [var.tensorboard, var.on_finish]
}
