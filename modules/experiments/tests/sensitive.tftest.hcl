# Runs may be sensitive: only their keys are shown.

mock_provider "trainyard" {
  mock_resource "trainyard_files" {
    defaults = { path = "/srv/files" }
  }
}

run "sensitive" {
  module {
    source = "./tests/sensitive"
  }

  assert {
    condition     = output.members == { first = "experiments-first-0", second = "experiments-second-0" }
    error_message = "The members of sensitive runs must be known."
  }
}
