# Invalid values for controllers, brokers and the rebalancer are reported at plan time.

mock_provider "trainyard" {}

variables {
  cluster = { name = "lab" }
}

run "two_controllers" {
  command = plan

  variables {
    controller = { replicas = 2 }
  }

  expect_failures = [var.controller]
}

run "controller_at_no_port" {
  command = plan

  variables {
    controller = { port = 0 }
  }

  expect_failures = [var.controller]
}

run "controller_without_a_heap" {
  command = plan

  variables {
    controller = { heap_mib = 1 }
  }

  expect_failures = [var.controller]
}

run "controller_with_less_memory_than_heap" {
  command = plan

  variables {
    controller = { resources = { memory_mib = 512 } }
  }

  expect_failures = [var.controller]
}

run "controller_data_that_is_relative" {
  command = plan

  variables {
    controller = { data_dir = "data" }
  }

  expect_failures = [var.controller]
}

run "controller_data_twice" {
  command = plan

  variables {
    controller = { data_dir = "/data", mounts = [{ type = "volume", source = "data", target = "/var/lib/kafka" }] }
  }

  expect_failures = [var.controller]
}

run "controller_conf_with_a_space" {
  command = plan

  variables {
    controller = { conf = { "log retention" = "1" } }
  }

  expect_failures = [var.controller]
}

run "controller_conf_of_the_module" {
  command = plan

  variables {
    controller = { conf = { "advertised.listeners" = "CONTROLLER://:1" } }
  }

  expect_failures = [var.controller]
}

run "controller_env_that_is_no_name" {
  command = plan

  variables {
    controller = { env = { "1A" = "x" } }
  }

  expect_failures = [var.controller]
}

run "controller_mount_that_is_relative" {
  command = plan

  variables {
    controller = { mounts = [{ source = "/data", target = "data" }] }
  }

  expect_failures = [var.controller]
}

run "controller_mount_of_no_type" {
  command = plan

  variables {
    controller = { mounts = [{ type = "nfs", target = "/data" }] }
  }

  expect_failures = [var.controller]
}

run "no_broker" {
  command = plan

  variables {
    broker = { replicas = 0 }
  }

  expect_failures = [var.broker]
}

run "part_of_a_broker" {
  command = plan

  variables {
    broker = { replicas = 1.5 }
  }

  expect_failures = [var.broker]
}

run "broker_at_no_port" {
  command = plan

  variables {
    broker = { port = 70000 }
  }

  expect_failures = [var.broker]
}

run "broker_without_a_heap" {
  command = plan

  variables {
    broker = { heap_mib = 1 }
  }

  expect_failures = [var.broker]
}

run "broker_with_less_memory_than_heap" {
  command = plan

  variables {
    broker = { resources = { memory_mib = 512, limits = { memory_mib = 1024 } } }
  }

  expect_failures = [var.broker]
}

run "broker_data_with_a_space" {
  command = plan

  variables {
    broker = { data_dir = "/my data" }
  }

  expect_failures = [var.broker]
}

run "broker_data_twice" {
  command = plan

  variables {
    broker = { data_dir = "/data", mounts = [{ type = "volume", source = "data", target = "/var/lib/kafka" }] }
  }

  expect_failures = [var.broker]
}

run "broker_without_a_unit" {
  command = plan

  variables {
    broker = { grace_period = "30" }
  }

  expect_failures = [var.broker]
}

run "broker_update_without_a_unit" {
  command = plan

  variables {
    broker = { update_delay = "30" }
  }

  expect_failures = [var.broker]
}

run "broker_conf_with_a_space" {
  command = plan

  variables {
    broker = { conf = { "log retention" = "1" } }
  }

  expect_failures = [var.broker]
}

run "broker_conf_of_the_module" {
  command = plan

  variables {
    broker = { conf = { "process.roles" = "broker,controller" } }
  }

  expect_failures = [var.broker]
}

run "broker_env_that_is_reserved" {
  command = plan

  variables {
    broker = { env = { TRAINYARD_HOST = "x" } }
  }

  expect_failures = [var.broker]
}

run "broker_mount_that_is_relative" {
  command = plan

  variables {
    broker = { mounts = [{ source = "/data", target = "data" }] }
  }

  expect_failures = [var.broker]
}

run "broker_mount_of_no_type" {
  command = plan

  variables {
    broker = { mounts = [{ type = "nfs", target = "/data" }] }
  }

  expect_failures = [var.broker]
}

run "rebalancer_with_arguments" {
  command = plan

  variables {
    rebalancer = { program = "rebalancer -v" }
  }

  expect_failures = [var.rebalancer]
}

run "rebalancer_of_files_elsewhere" {
  command = plan

  variables {
    rebalancer = { program = "/opt/rebalancer", files = "tests/cluster/bin" }
  }

  expect_failures = [var.rebalancer]
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

run "rebalancer_without_an_image" {
  command = plan

  variables {
    rebalancer = { image = "" }
  }

  expect_failures = [var.rebalancer]
}

run "rebalancer_at_no_port" {
  command = plan

  variables {
    rebalancer = { port = 0 }
  }

  expect_failures = [var.rebalancer]
}

run "rebalancer_that_moves_less_than_nothing" {
  command = plan

  variables {
    rebalancer = { throttle_mib = -1 }
  }

  expect_failures = [var.rebalancer]
}

run "rebalancer_without_a_unit" {
  command = plan

  variables {
    rebalancer = { timeout = "6" }
  }

  expect_failures = [var.rebalancer]
}
