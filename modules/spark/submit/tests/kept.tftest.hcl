# An application that has been submitted keeps what its cluster offered then.

mock_provider "trainyard" {
  mock_resource "trainyard_files" {
    defaults = { path = "/srv/files" }
  }
}

variables {
  spark = {
    cluster  = { name = "lab" }
    master   = "spark://127.0.0.1:7077"
    executor = { workers = 4, cores = 4, memory_mib = 4096 }
    capacity = { workers = 4, cores = 4, memory_mib = 4096 }
  }

  secret_values = {} # an apply of a root module requires all of its ephemeral variables
}

run "submitted" {
  assert {
    condition     = output.workers == 4 && contains(trainyard_group.this.command, "spark.cores.max=16") && trainyard_group.this.env.WORKERS == "4"
    error_message = "An application must get all workers."
  }
}

run "while_the_master_is_missing" {
  command = plan

  plan_options {
    mode = refresh-only
  }

  variables {
    spark = {
      name     = "spark"
      cluster  = { name = "lab" }
      master   = null
      executor = { workers = 4, cores = 4, memory_mib = 4096 }
      capacity = { workers = 4, cores = 4, memory_mib = 4096 }
    }
  }

  assert {
    condition     = output.workers == 4
    error_message = "A refresh must work while the cluster has no master."
  }
}

run "on_a_parked_cluster" {
  command = plan

  variables {
    spark = {
      cluster  = { name = "lab" }
      master   = "spark://127.0.0.1:7077"
      executor = { workers = 0, cores = 4, memory_mib = 4096 }
      capacity = { workers = 0, cores = 4, memory_mib = 4096 }
    }
  }

  expect_failures = [check.workers]

  assert {
    condition     = output.workers == 4 && contains(trainyard_group.this.command, "spark.cores.max=16") && trainyard_group.this.env.WORKERS == "4"
    error_message = "A parked cluster must not submit an application again."
  }
}

run "on_a_smaller_cluster" {
  command = plan

  variables {
    spark = {
      cluster  = { name = "lab" }
      master   = "spark://127.0.0.1:7077"
      executor = { workers = 2, cores = 2, memory_mib = 2048 }
      capacity = { workers = 2, cores = 2, memory_mib = 2048 }
    }
  }

  assert {
    condition     = output.workers == 4 && contains(trainyard_group.this.command, "spark.executor.cores=4") && contains(trainyard_group.this.command, "spark.executor.memory=4096m")
    error_message = "A smaller cluster must not submit an application again."
  }
}

run "under_a_policy_that_only_reports" {
  command = plan

  variables {
    spark = {
      cluster  = { name = "lab" }
      master   = "spark://127.0.0.1:7077"
      executor = { workers = 2, cores = 4, memory_mib = 4096 }
      capacity = { workers = 8, cores = 4, memory_mib = 4096, dry_run = true }
    }
  }

  expect_failures = [check.workers]

  assert {
    condition     = output.workers == 4
    error_message = "A policy that only reports must not submit an application again."
  }
}

run "with_other_args_on_a_smaller_cluster" {
  command = plan

  variables {
    args = ["--rows", "10"]
    spark = {
      cluster  = { name = "lab" }
      master   = "spark://127.0.0.1:7077"
      executor = { workers = 2, cores = 2, memory_mib = 2048 }
      capacity = { workers = 2, cores = 2, memory_mib = 2048 }
    }
  }

  assert {
    condition     = output.workers == 2 && contains(trainyard_group.this.command, "spark.executor.cores=2") && contains(trainyard_group.this.command, "spark.executor.memory=2048m")
    error_message = "What submits an application again must give it the cluster's current size."
  }
}

run "of_another_spark" {
  command = plan

  variables {
    spark = {
      cluster  = { name = "lab" }
      master   = "spark://127.0.0.2:7077"
      executor = { workers = 8, cores = 2, memory_mib = 2048 }
      capacity = { workers = 8, cores = 2, memory_mib = 2048 }
    }
  }

  assert {
    condition     = output.workers == 8 && trainyard_group.this.env.WORKERS == "8"
    error_message = "Another Spark cluster must be used as it is."
  }
}

run "with_another_deadline_on_a_smaller_cluster" {
  command = plan

  variables {
    deadline = "2h"
    priority = 3
    driver   = { placement = { hosts = ["first"] } }
    spark = {
      cluster  = { name = "lab", endpoint = "ssh://ops@gpu1" }
      master   = "spark://127.0.0.1:7077"
      executor = { workers = 2, cores = 2, memory_mib = 2048 }
      capacity = { workers = 2, cores = 2, memory_mib = 2048 }
    }
  }

  assert {
    condition     = output.workers == 4
    error_message = "What restarts no driver must not submit an application again."
  }
}

run "once_more_on_a_smaller_cluster" {
  variables {
    triggers = { commit = "2" }
    spark = {
      cluster  = { name = "lab" }
      master   = "spark://127.0.0.1:7077"
      executor = { workers = 2, cores = 2, memory_mib = 2048 }
      capacity = { workers = 2, cores = 2, memory_mib = 2048 }
    }
  }

  assert {
    condition     = output.workers == 2 && contains(trainyard_group.this.command, "spark.executor.cores=2") && contains(trainyard_group.this.command, "spark.executor.memory=2048m")
    error_message = "Submitted again, an application must get the current size of its cluster."
  }
}

run "with_workers_on_a_parked_cluster" {
  command = plan

  variables {
    name    = "another"
    workers = 2
    spark = {
      cluster  = { name = "lab" }
      master   = "spark://127.0.0.1:7077"
      executor = { workers = 0, cores = 4, memory_mib = 4096 }
      capacity = { workers = 0, cores = 4, memory_mib = 4096 }
    }
  }

  expect_failures = [check.workers]

  assert {
    condition     = output.workers == 2
    error_message = "An application may wait for a parked cluster."
  }
}

run "with_too_large_executors_on_a_parked_cluster" {
  command = plan

  variables {
    name     = "another"
    workers  = 2
    executor = { memory_mib = 8192 }
    spark = {
      cluster  = { name = "lab" }
      master   = "spark://127.0.0.1:7077"
      executor = { workers = 0, cores = 4, memory_mib = 4096 }
      capacity = { workers = 0, cores = 4, memory_mib = 4096 }
    }
  }

  expect_failures = [trainyard_group.this, check.workers]
}

run "before_it_grows" {
  module {
    source = "./tests/growing"
  }

  variables {
    workers = 2
  }

  assert {
    condition     = output.workers == 2
    error_message = "An application must get all workers."
  }
}

run "while_it_grows" {
  command = plan

  module {
    source = "./tests/growing"
  }

  variables {
    workers = 8
  }

  assert {
    condition     = output.workers == 2
    error_message = "An address that is unknown yet must not submit an application again."
  }
}
