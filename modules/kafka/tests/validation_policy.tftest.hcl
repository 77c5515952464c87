# Invalid values for a policy, and for what depends on it, are reported at plan time.
# A run that breaks several variables expects all failures.

mock_provider "trainyard" {}

variables {
  cluster = { name = "lab" }
}

run "policy_from_none_and_part_of_a_priority" {
  command = plan

  variables {
    broker     = { resources = { cpus = 1 } }
    rebalancer = {}
    autoscale  = { min = 0, max = 3 }
    priority   = 1.5
  }

  expect_failures = [var.autoscale, var.priority]
}

run "policy_of_less_than_its_least" {
  command = plan

  variables {
    broker     = { resources = { cpus = 1 } }
    rebalancer = {}
    autoscale  = { min = 3, max = 2 }
  }

  expect_failures = [var.autoscale]
}

run "policy_without_a_rebalancer" {
  command = plan

  variables {
    broker    = { resources = { cpus = 1 } }
    autoscale = { min = 3, max = 6 }
  }

  expect_failures = [var.autoscale]
}

run "policy_and_replicas" {
  command = plan

  variables {
    broker     = { replicas = 3, resources = { cpus = 1 } }
    rebalancer = {}
    autoscale  = { min = 3, max = 6 }
  }

  expect_failures = [var.autoscale]
}

run "policy_without_a_measure" {
  command = plan

  variables {
    rebalancer = {}
    autoscale  = { min = 3, max = 6 }
  }

  expect_failures = [var.autoscale]
}

run "load_at_no_address" {
  command = plan

  variables {
    broker     = { resources = { cpus = 1 } }
    rebalancer = {}
    autoscale  = { min = 3, max = 6, load = { url = "load:9393" } }
  }

  expect_failures = [var.autoscale]
}

run "policy_without_an_algorithm" {
  command = plan

  variables {
    broker     = { resources = { cpus = 1 } }
    rebalancer = {}
    autoscale  = { min = 3, max = 6, algorithm = {} }
  }

  expect_failures = [var.autoscale]
}

run "policy_of_two_algorithms" {
  command = plan

  variables {
    broker     = { resources = { cpus = 1 } }
    rebalancer = {}
    autoscale  = { min = 3, max = 6, algorithm = { target = { value = 60 }, risk = { percent = 1 } } }
  }

  expect_failures = [var.autoscale]
}

run "heat_of_a_load" {
  command = plan

  variables {
    broker     = { resources = { cpus = 1 } }
    rebalancer = {}
    autoscale  = { min = 3, max = 6, load = { url = "http://load:9393" }, algorithm = { heat = { lower = 20, upper = 60, target = 50 } } }
  }

  expect_failures = [var.autoscale]
}

run "target_of_nothing" {
  command = plan

  variables {
    broker     = { resources = { cpus = 1 } }
    rebalancer = {}
    autoscale  = { min = 3, max = 6, algorithm = { target = { value = 0 } } }
  }

  expect_failures = [var.autoscale]
}

run "heat_upside_down" {
  command = plan

  variables {
    broker     = { resources = { cpus = 1 } }
    rebalancer = {}
    autoscale  = { min = 3, max = 6, algorithm = { heat = { lower = 60, upper = 20, target = 50 } } }
  }

  expect_failures = [var.autoscale]
}

run "risk_of_nothing" {
  command = plan

  variables {
    broker     = { resources = { cpus = 1 } }
    rebalancer = {}
    autoscale  = { min = 3, max = 6, algorithm = { risk = { percent = 0 } } }
  }

  expect_failures = [var.autoscale]
}

run "risk_of_a_load_without_a_capacity" {
  command = plan

  variables {
    broker     = { resources = { cpus = 1 } }
    rebalancer = {}
    autoscale  = { min = 3, max = 6, load = { url = "http://load:9393" }, algorithm = { risk = { percent = 1 } } }
  }

  expect_failures = [var.autoscale]
}

run "durations_without_a_unit" {
  command = plan

  variables {
    broker     = { resources = { cpus = 1 } }
    rebalancer = {}
    autoscale  = { min = 3, max = 6, cooldown = "10" }
    timeouts   = { create = "30" }
  }

  expect_failures = [var.autoscale, var.timeouts]
}

run "model_of_a_load_without_capacity" {
  command = plan

  variables {
    rebalancer = {}
    autoscale  = { min = 3, max = 6, load = { url = "http://load:9393" }, algorithm = { learned = { model = "{}" } } }
  }

  expect_failures = [var.autoscale]
}

run "model_that_observes_what_nobody_tells" {
  command = plan

  variables {
    broker     = { resources = { cpus = 1 } }
    rebalancer = {}
    autoscale  = { min = 3, max = 6, algorithm = { learned = { model = "{}", observes = ["cpu", "p99"], latency_bound_ms = 500 } } }
  }

  expect_failures = [var.autoscale]
}

run "model_that_observes_latency_without_a_bound" {
  command = plan

  variables {
    rebalancer = {}
    autoscale  = { min = 3, max = 6, load = { url = "http://load:9393" }, algorithm = { learned = { model = "{}", capacity = 100, observes = ["p99"] } } }
  }

  expect_failures = [var.autoscale]
}
