# Applications under a policy that only reports: a plan warns that nobody adds workers for them.

mock_provider "trainyard" {
  mock_resource "trainyard_files" {
    defaults = { path = "/srv/files" }
  }

  mock_resource "trainyard_group" {
    defaults = { members = { spark-master-0 = "127.0.0.1:7077" } }
  }
}

variables {
  cluster       = { name = "lab" }
  autoscale     = { max = 8 }
  secret_values = {} # an apply of a root module requires all of its ephemeral variables
}

run "cluster" {}

run "completed" {
  module {
    source = "./submit"
  }

  variables {
    spark = run.cluster
  }

  assert {
    condition     = output.workers == 2
    error_message = "An application must get the workers that the policy provides for it."
  }
}

run "dry_run" {
  variables {
    autoscale = { max = 8, dry_run = true }
  }
}

run "stays_completed" {
  command = plan

  module {
    source = "./submit"
  }

  variables {
    spark = run.dry_run
  }

  expect_failures = [check.workers]

  assert {
    condition     = output.workers == 2
    error_message = "A policy that only reports must not submit an application again."
  }
}

run "waits" {
  command = plan

  module {
    source = "./submit"
  }

  variables {
    name    = "another"
    spark   = run.dry_run
    workers = 8
  }

  expect_failures = [check.workers]

  assert {
    condition     = output.workers == 8
    error_message = "An application may wait for workers that are added otherwise."
  }
}
