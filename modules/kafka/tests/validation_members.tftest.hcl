# Invalid values for controllers, brokers and the rebalancer are reported at plan time.
# A run that breaks several variables expects all failures.

mock_provider "trainyard" {}

variables {
  cluster = { name = "lab" }
}

run "two_controllers_and_no_broker" {
  command = plan

  variables {
    controller = { replicas = 2 }
    broker     = { replicas = 0 }
  }

  expect_failures = [var.controller, var.broker]
}

run "fractional_brokers_and_negative_throttle" {
  command = plan

  variables {
    broker     = { replicas = 1.5 }
    rebalancer = { throttle_mib = -1 }
  }

  expect_failures = [var.broker, var.rebalancer]
}

run "invalid_ports" {
  command = plan

  variables {
    controller = { port = 0 }
    broker     = { port = 70000 }
    rebalancer = { port = 0 }
  }

  expect_failures = [var.controller, var.broker, var.rebalancer]
}

run "heaps_too_small" {
  command = plan

  variables {
    controller = { heap_mib = 1 }
    broker     = { heap_mib = 1 }
  }

  expect_failures = [var.controller, var.broker]
}

run "less_memory_than_heap" {
  command = plan

  variables {
    controller = { resources = { memory_mib = 512 } }
    broker     = { resources = { memory_mib = 512, limits = { memory_mib = 1024 } } }
  }

  expect_failures = [var.controller, var.broker]
}

run "malformed_paths" {
  command = plan

  variables {
    controller = { data_dir = "data" }
    broker     = { data_dir = "/my data" }
    rebalancer = { program = "rebalancer -v" }
  }

  expect_failures = [var.controller, var.broker, var.rebalancer]
}

run "contradictions" {
  command = plan

  variables {
    # Two places for data, and a program that is not in its files.
    controller = { data_dir = "/data", mounts = [{ type = "volume", source = "data", target = "/var/lib/kafka" }] }
    broker     = { data_dir = "/data", mounts = [{ type = "volume", source = "data", target = "/var/lib/kafka" }] }
    rebalancer = { program = "/opt/rebalancer", files = "tests/cluster/bin" }
  }

  expect_failures = [var.controller, var.broker, var.rebalancer]
}

run "durations_without_a_unit" {
  command = plan

  variables {
    broker     = { grace_period = "30" }
    rebalancer = { timeout = "6" }
  }

  expect_failures = [var.broker, var.rebalancer]
}

run "broker_update_without_a_unit_and_rebalancer_without_an_image" {
  command = plan

  variables {
    broker     = { update_delay = "30" }
    rebalancer = { image = "" }
  }

  expect_failures = [var.broker, var.rebalancer]
}

run "conf_with_a_space" {
  command = plan

  variables {
    controller = { conf = { "log retention" = "1" } }
    broker     = { conf = { "log retention" = "1" } }
  }

  expect_failures = [var.controller, var.broker]
}

run "conf_of_the_module" {
  command = plan

  variables {
    controller = { conf = { "advertised.listeners" = "CONTROLLER://:1" } }
    broker     = { conf = { "process.roles" = "broker,controller" } }
  }

  expect_failures = [var.controller, var.broker]
}

run "env_that_is_not_allowed" {
  command = plan

  variables {
    controller = { env = { "1A" = "x" } }
    broker     = { env = { TRAINYARD_HOST = "x" } }
  }

  expect_failures = [var.controller, var.broker]
}

run "relative_mounts" {
  command = plan

  variables {
    controller = { mounts = [{ source = "/data", target = "data" }] }
    broker     = { mounts = [{ source = "/data", target = "data" }] }
  }

  expect_failures = [var.controller, var.broker]
}

run "mounts_of_no_type" {
  command = plan

  variables {
    controller = { mounts = [{ type = "nfs", target = "/data" }] }
    broker     = { mounts = [{ type = "nfs", target = "/data" }] }
  }

  expect_failures = [var.controller, var.broker]
}

run "rebalancer_of_files_on_a_swarm" {
  command = plan

  variables {
    cluster    = { name = "lab", engine = "swarm" }
    image      = "kafka:4.3.1"
    rebalancer = { files = "tests/cluster/bin" }
  }

  expect_failures = [var.rebalancer]
}
