# The outputs describe what runs.

mock_provider "trainyard" {
  mock_resource "trainyard_files" {
    defaults = { path = "/srv/files" }
  }
}

variables {
  seeds = range(2)
}

run "outputs" {
  override_resource {
    target = trainyard_sweep.this
    values = { id = "lab/experiments" }
  }

  override_resource {
    target = trainyard_group.tensorboard
    values = { members = { experiments-tensorboard-web-0 = "127.0.0.1:6006" } }
  }

  variables {
    cluster     = { name = "lab" }
    results     = { path = "/srv/results" }
    tensorboard = {}
  }

  assert {
    condition     = output.id == "lab/experiments" && output.name == "experiments" && output.path == "/srv/files" && output.tensorboard == "http://127.0.0.1:6006"
    error_message = "The outputs must say what runs, and where TensorBoard is."
  }
}
