# The examples plan.

mock_provider "trainyard" {}

run "minimal" {
  command = plan

  module {
    source = "./examples/minimal"
  }
}

run "complete" {
  command = plan

  module {
    source = "./examples/complete"
  }
}
