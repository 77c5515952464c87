# The example plans.

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
