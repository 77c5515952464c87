# Invalid values are reported at plan time.

mock_provider "trainyard" {}

variables {
  cluster = { name = "lab" }
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
    name = "Kafka"
  }

  expect_failures = [var.name]
}

run "name_too_long" {
  command = plan

  variables {
    name = "a23456789-123456789-123456789-123456789"
  }

  expect_failures = [var.name]
}

run "swarm_without_an_image" {
  command = plan

  variables {
    cluster = { name = "lab", engine = "swarm" }
  }

  expect_failures = [var.image]
}

run "image_without_a_name" {
  command = plan

  variables {
    image = " "
  }

  expect_failures = [var.image]
}

run "java_with_arguments" {
  command = plan

  variables {
    java = "java -server"
  }

  expect_failures = [var.java]
}

run "libs_that_are_relative" {
  command = plan

  variables {
    libs = "kafka/libs"
  }

  expect_failures = [var.libs]
}

run "libs_with_a_quote" {
  command = plan

  variables {
    libs = "/opt/kafka's/libs"
  }

  expect_failures = [var.libs]
}

run "env_that_is_reserved" {
  command = plan

  variables {
    env = { TRAINYARD_HOST = "x" }
  }

  expect_failures = [var.env]
}

run "mount_that_is_relative" {
  command = plan

  variables {
    mounts = [{ source = "/data", target = "data" }]
  }

  expect_failures = [var.mounts]
}

run "mount_of_no_type" {
  command = plan

  variables {
    mounts = [{ type = "nfs", target = "/data" }]
  }

  expect_failures = [var.mounts]
}

run "conf_with_a_space" {
  command = plan

  variables {
    conf = { "log retention" = "1" }
  }

  expect_failures = [var.conf]
}

run "conf_of_two_lines" {
  command = plan

  variables {
    conf = { "log.retention.hours" = "1\nnode.id=7" }
  }

  expect_failures = [var.conf]
}

run "conf_of_the_module" {
  command = plan

  variables {
    conf = { "node.id" = "7" }
  }

  expect_failures = [var.conf]
}

run "listeners_of_all" {
  command = plan

  variables {
    conf = { "listeners" = "SSL://:9092" }
  }

  expect_failures = [var.conf]
}

run "cluster_id_that_is_short" {
  command = plan

  variables {
    cluster_id = "kafka"
  }

  expect_failures = [var.cluster_id]
}

run "cluster_id_of_more_than_16_bytes" {
  command = plan

  variables {
    cluster_id = "kafka-test-_123456789x"
  }

  expect_failures = [var.cluster_id]
}

run "no_copies" {
  command = plan

  variables {
    replication_factor = 0
  }

  expect_failures = [var.replication_factor]
}

run "more_copies_than_brokers" {
  command = plan

  variables {
    replication_factor = 4
  }

  expect_failures = [var.replication_factor]
}

run "more_copies_than_brokers_that_stay" {
  command = plan

  variables {
    replication_factor = 3
    rebalancer         = {}
    broker             = { resources = { cpus = 1 } }
    autoscale          = { min = 2, max = 6 }
  }

  expect_failures = [var.replication_factor]
}
