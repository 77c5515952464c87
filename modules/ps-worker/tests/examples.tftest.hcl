# The examples plan.

mock_provider "trainyard" {
  mock_resource "trainyard_files" {
    defaults = { path = "/srv/files" }
  }

  mock_resource "trainyard_image" {
    defaults = { image_id = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" }
  }
}

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
