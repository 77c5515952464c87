# Invalid values are reported at plan time.
# A run that breaks several variables expects all failures.

mock_provider "trainyard" {}

variables {
  cluster = { name = "lab" }
}

run "unknown_engine" {
  command = plan

  variables {
    cluster = { name = "lab", engine = "kubernetes" }
  }

  expect_failures = [var.cluster]
}

run "names_that_are_not_allowed" {
  command = plan

  variables {
    name = "Kafka"
    env  = { TRAINYARD_HOST = "x" }
    conf = { "log retention" = "1" }
  }

  expect_failures = [var.name, var.env, var.conf]
}

run "malformed_texts" {
  command = plan

  variables {
    java       = "java -server"
    libs       = "/opt/kafka's/libs"
    conf       = { "log.retention.hours" = "1\nnode.id=7" }
    cluster_id = "kafka" # too short
  }

  expect_failures = [var.java, var.libs, var.conf, var.cluster_id]
}

run "texts_too_long" {
  command = plan

  variables {
    name       = "a23456789-123456789-123456789-123456789"
    cluster_id = "kafka-test-_123456789x" # more than 16 bytes
  }

  expect_failures = [var.name, var.cluster_id]
}

run "relative_paths" {
  command = plan

  variables {
    libs   = "kafka/libs"
    mounts = [{ source = "/data", target = "data" }]
  }

  expect_failures = [var.libs, var.mounts]
}

run "image_without_a_name_and_no_copies" {
  command = plan

  variables {
    image              = " "
    replication_factor = 0
  }

  expect_failures = [var.image, var.replication_factor]
}

run "conf_of_the_module_and_mount_of_no_type" {
  command = plan

  variables {
    mounts = [{ type = "nfs", target = "/data" }]
    conf   = { "node.id" = "7" }
  }

  expect_failures = [var.mounts, var.conf]
}

run "listeners_of_all_and_more_copies_than_brokers" {
  command = plan

  variables {
    conf               = { "listeners" = "SSL://:9092" }
    replication_factor = 4
  }

  expect_failures = [var.conf, var.replication_factor]
}

run "swarm_without_an_image" {
  command = plan

  variables {
    cluster = { name = "lab", engine = "swarm" }
  }

  expect_failures = [var.image]
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
