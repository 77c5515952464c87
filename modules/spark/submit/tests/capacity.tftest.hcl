# What never fits into the Spark cluster's workers is rejected at plan time.

mock_provider "trainyard" {
  mock_resource "trainyard_files" {
    defaults = { path = "/srv/files" }
  }
}

variables {
  spark = {
    cluster  = { name = "lab" }
    master   = "spark://127.0.0.1:7077"
    executor = { workers = 2, cores = 4, memory_mib = 4096 }
    capacity = { workers = 2, cores = 4, memory_mib = 4096 }
  }

  secret_values = {} # an apply of a root module requires all of its ephemeral variables
}

run "all_workers" {
  assert {
    condition     = output.workers == 2 && contains(trainyard_group.this.command, "spark.cores.max=8")
    error_message = "An application may have all workers."
  }
}

run "several_executors_on_a_worker" {
  variables {
    workers  = 6
    executor = { cores = 1, memory_mib = 1365 }
  }

  assert {
    condition     = output.workers == 6 && contains(trainyard_group.this.command, "spark.cores.max=6")
    error_message = "Three executors fit into the memory of each worker."
  }
}

run "more_executors_than_memory" {
  command = plan

  variables {
    workers  = 7
    executor = { cores = 1, memory_mib = 1365 }
  }

  expect_failures = [trainyard_group.this]
}

run "more_workers_than_there_are" {
  command = plan

  variables {
    workers = 3
  }

  expect_failures = [trainyard_group.this]
}

run "more_cores_than_a_worker_has" {
  command = plan

  variables {
    workers  = 1
    executor = { cores = 5 }
  }

  expect_failures = [trainyard_group.this]
}

run "more_memory_than_a_worker_has" {
  command = plan

  variables {
    workers  = 1
    executor = { memory_mib = 8192 }
  }

  expect_failures = [trainyard_group.this]
}

run "no_workers" {
  command = plan

  variables {
    name = "another" # one that has never been submitted
    spark = {
      cluster  = { name = "lab" }
      master   = "spark://127.0.0.1:7077"
      executor = { workers = 0 }
      capacity = { workers = 0, cores = 1, memory_mib = 1024 }
    }
  }

  expect_failures = [trainyard_group.this, check.workers]
}

run "two_executors_on_a_gpu" {
  command = plan

  variables {
    spark = {
      cluster  = { name = "lab" }
      master   = "spark://127.0.0.1:7077"
      conf     = { "spark.executor.resource.gpu.amount" = "1" }
      executor = { workers = 2, cores = 4, memory_mib = 4096 }
      capacity = { workers = 2, cores = 4, memory_mib = 4096, gpus = 1 }
    }
    workers  = 4
    executor = { cores = 2, memory_mib = 2048 }
  }

  expect_failures = [trainyard_group.this]
}

run "more_gpus_than_a_worker_has" {
  command = plan

  variables {
    conf = { "spark.executor.resource.gpu.amount" = "1" }
  }

  expect_failures = [trainyard_group.this]
}

run "a_cluster_of_unknown_capacity" {
  variables {
    spark    = { cluster = { name = "lab" }, master = "spark://127.0.0.1:7077" }
    workers  = 40
    executor = { cores = 8, memory_mib = 65536 }
  }

  assert {
    condition     = output.workers == 40
    error_message = "Whoever submits from elsewhere knows the cluster."
  }
}

run "in_the_words_of_conf" {
  variables {
    workers = 8
    conf    = { "spark.executor.cores" = "1", "spark.executor.memory" = "1g" }
  }

  assert {
    condition     = output.workers == 8
    error_message = "What conf says is Spark's to check."
  }
}
