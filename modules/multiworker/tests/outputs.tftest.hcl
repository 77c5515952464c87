# The outputs describe what runs.

mock_provider "trainyard" {
  mock_resource "trainyard_files" {
    defaults = { path = "/srv/files" }
  }
}

variables {
  cluster       = { name = "lab" }
  secret_values = {} # an apply of a root module requires all of its ephemeral variables
}

run "outputs" {
  override_resource {
    target = trainyard_group.this
    values = {
      id         = "lab/multiworker"
      members    = { multiworker-worker-0 = "127.0.0.1:5001" }
      placements = { multiworker-worker-0 = "local" }
    }
  }

  override_resource {
    target = trainyard_group.tensorboard
    values = { members = { multiworker-tensorboard-web-0 = "127.0.0.1:6006" } }
  }

  variables {
    log_dir     = "/srv/logs"
    model_dir   = "/srv/models"
    tensorboard = {}
  }

  assert {
    condition     = output.id == "lab/multiworker" && output.members["multiworker-worker-0"] == "127.0.0.1:5001" && output.placements["multiworker-worker-0"] == "local" && output.path == "/srv/files"
    error_message = "The outputs must say which members run where."
  }

  assert {
    condition     = output.tensorboard == "http://127.0.0.1:6006" && output.model == "/srv/models/model.keras" && output.cluster.name == "lab" && output.chief == "multiworker-worker-0"
    error_message = "The outputs must say where TensorBoard and the model are, and which member writes them."
  }
}
