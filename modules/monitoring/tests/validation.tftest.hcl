# Invalid values are reported at plan time.

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

run "name_in_capitals" {
  command = plan

  variables {
    name = "Monitoring"
  }

  expect_failures = [var.name]
}

run "name_too_long" {
  command = plan

  variables {
    name = "a23456789-123456789-123456789-123456789-123456789"
  }

  expect_failures = [var.name]
}

run "empty_image" {
  command = plan

  variables {
    image = " "
  }

  expect_failures = [var.image]
}

run "privileged_port" {
  command = plan

  variables {
    port = 80
  }

  expect_failures = [var.port]
}

run "port_in_parts" {
  command = plan

  variables {
    port = 9090.5
  }

  expect_failures = [var.port]
}

run "published_port_too_large" {
  command = plan

  variables {
    published_port = 65536
  }

  expect_failures = [var.published_port]
}

run "retention_in_words" {
  command = plan

  variables {
    retention = "15 days"
  }

  expect_failures = [var.retention]
}

run "retention_size_in_mebibytes" {
  command = plan

  variables {
    retention_size = "50GiB"
  }

  expect_failures = [var.retention_size]
}

run "interval_below_a_second" {
  command = plan

  variables {
    scrape_interval = "500ms"
  }

  expect_failures = [var.scrape_interval]
}

run "interval_above_a_minute" {
  command = plan

  variables {
    scrape_interval = "61s"
  }

  expect_failures = [var.scrape_interval]
}

run "interval_of_minutes" {
  command = plan

  variables {
    scrape_interval = "2m"
  }

  expect_failures = [var.scrape_interval]
}

run "job_without_a_name" {
  command = plan

  variables {
    scrape_configs = [{ static_configs = [] }]
  }

  expect_failures = [var.scrape_configs]
}

run "job_of_the_agents" {
  command = plan

  variables {
    scrape_configs = [{ job_name = "trainyard" }]
  }

  expect_failures = [var.scrape_configs]
}

run "job_of_the_controller" {
  command = plan

  variables {
    scrape_configs = [{ job_name = "dcgm" }, { job_name = "trainyard-controller" }]
  }

  expect_failures = [var.scrape_configs]
}

run "two_jobs_of_one_name" {
  command = plan

  variables {
    scrape_configs = [{ job_name = "dcgm" }, { job_name = "dcgm" }]
  }

  expect_failures = [var.scrape_configs]
}

run "grafana_on_a_privileged_port" {
  command = plan

  variables {
    grafana          = { port = 80 }
    grafana_password = "hunter2"
  }

  expect_failures = [var.grafana]
}

run "grafana_published_at_no_port" {
  command = plan

  variables {
    grafana          = { published_port = 0 }
    grafana_password = "hunter2"
  }

  expect_failures = [var.grafana]
}

run "rule_file_of_the_module" {
  command = plan

  variables {
    rule_files = { trainyard = "groups: []" }
  }

  expect_failures = [var.rule_files]
}

run "rule_file_without_groups" {
  command = plan

  variables {
    rule_files = { mine = "rules: []" }
  }

  expect_failures = [var.rule_files]
}

run "alertmanager_as_a_url" {
  command = plan

  variables {
    alertmanagers = ["http://10.0.0.9:9093"]
  }

  expect_failures = [var.alertmanagers]
}
