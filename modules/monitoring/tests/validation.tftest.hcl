# Invalid values are reported at plan time.
# A run that breaks several variables expects all failures.

mock_provider "trainyard" {}

variables {
  cluster = { name = "lab", engine = "swarm" }
}

run "cluster_on_process" {
  command = plan

  variables {
    cluster = { name = "lab", engine = "process" }
  }

  expect_failures = [var.cluster]
}

run "cluster_without_an_engine" {
  command = plan

  variables {
    cluster = { name = "lab" }
  }

  expect_failures = [var.cluster]
}

run "cluster_without_agents" {
  command = plan

  variables {
    cluster = { name = "lab", engine = "swarm", agent = { enabled = false } }
  }

  expect_failures = [var.cluster]
}

run "malformed_names" {
  command = plan

  variables {
    name           = "Monitoring"
    image          = " "
    scrape_configs = [{ static_configs = [] }] # without a name
  }

  expect_failures = [var.name, var.image, var.scrape_configs]
}

run "reserved_names" {
  command = plan

  variables {
    scrape_configs = [{ job_name = "trainyard" }]
    rule_files     = { trainyard = "groups: []" }
  }

  expect_failures = [var.scrape_configs, var.rule_files]
}

run "name_too_long_and_two_jobs_of_one_name" {
  command = plan

  variables {
    name           = "a23456789-123456789-123456789-123456789-123456789"
    scrape_configs = [{ job_name = "dcgm" }, { job_name = "dcgm" }]
  }

  expect_failures = [var.name, var.scrape_configs]
}

run "malformed_files_and_addresses" {
  command = plan

  variables {
    rule_files    = { mine = "rules: []" }
    alertmanagers = ["http://10.0.0.9:9093"]
  }

  expect_failures = [var.rule_files, var.alertmanagers]
}

run "ports_out_of_range" {
  command = plan

  variables {
    port             = 80
    published_port   = 65536
    grafana          = { port = 80 }
    grafana_password = "hunter2"
  }

  expect_failures = [var.port, var.published_port, var.grafana]
}

run "numbers_out_of_range" {
  command = plan

  variables {
    port             = 9090.5
    scrape_interval  = "61s"
    grafana          = { published_port = 0 }
    grafana_password = "hunter2"
  }

  expect_failures = [var.port, var.scrape_interval, var.grafana]
}

run "unknown_units" {
  command = plan

  variables {
    retention       = "15 days"
    retention_size  = "50GiB"
    scrape_interval = "500ms"
  }

  expect_failures = [var.retention, var.retention_size, var.scrape_interval]
}

run "interval_of_minutes_and_job_of_the_controller" {
  command = plan

  variables {
    scrape_interval = "2m"
    scrape_configs  = [{ job_name = "dcgm" }, { job_name = "trainyard-controller" }]
  }

  expect_failures = [var.scrape_interval, var.scrape_configs]
}
