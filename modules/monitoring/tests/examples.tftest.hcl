# The examples plan.

mock_provider "trainyard" {}

variables {
  grafana_password = "hunter2"
}

run "complete" {
  command = plan

  module {
    source = "./examples/complete"
  }
}

run "bare_hosts" {
  command = plan

  module {
    source = "./examples/bare-hosts"
  }
}
