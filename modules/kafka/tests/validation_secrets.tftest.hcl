# Invalid secrets are reported at plan time.

mock_provider "trainyard" {}

variables {
  cluster = { name = "lab" }
}

run "secrets_of_processes" {
  command = plan

  variables {
    secrets       = { token = { version = "1" } }
    secret_values = { token = "hunter2" }
  }

  expect_failures = [var.secrets]
}

run "secret_without_a_name" {
  command = plan

  variables {
    cluster       = { name = "lab", engine = "systemd" }
    secrets       = { "the token" = { version = "1" } }
    secret_values = { "the token" = "hunter2" }
  }

  expect_failures = [var.secrets]
}

run "secret_without_a_version" {
  command = plan

  variables {
    cluster       = { name = "lab", engine = "systemd" }
    secrets       = { token = { version = " " } }
    secret_values = { token = "hunter2" }
  }

  expect_failures = [var.secrets]
}

run "secret_in_a_relative_path" {
  command = plan

  variables {
    cluster       = { name = "lab", engine = "systemd" }
    secrets       = { token = { version = "1", target = "token" } }
    secret_values = { token = "hunter2" }
  }

  expect_failures = [var.secrets]
}

run "secret_in_the_root" {
  command = plan

  variables {
    cluster       = { name = "lab", engine = "systemd" }
    secrets       = { token = { version = "1", target = "/" } }
    secret_values = { token = "hunter2" }
  }

  expect_failures = [var.secrets]
}

run "secret_for_everybody" {
  command = plan

  variables {
    cluster       = { name = "lab", engine = "systemd" }
    secrets       = { token = { version = "1", mode = "rw-r--r--" } }
    secret_values = { token = "hunter2" }
  }

  expect_failures = [var.secrets]
}

run "secret_without_a_value" {
  command = plan

  variables {
    cluster       = { name = "lab", engine = "systemd" }
    secrets       = { token = { version = "1" } }
    secret_values = {}
  }

  expect_failures = [var.secret_values]
}

run "value_of_no_secret" {
  command = plan

  variables {
    cluster       = { name = "lab", engine = "systemd" }
    secret_values = { token = "hunter2" }
  }

  expect_failures = [var.secret_values]
}
