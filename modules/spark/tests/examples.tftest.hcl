# The examples plan.
# Only for Terraform: OpenTofu mocks in another way.

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
