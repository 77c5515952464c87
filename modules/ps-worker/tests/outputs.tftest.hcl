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
      id         = "lab/ps-worker"
      members    = { ps-worker-ps-0 = "127.0.0.1:8000" }
      placements = { ps-worker-ps-0 = "local" }
    }
  }

  override_resource {
    target = trainyard_group.tensorboard
    values = { members = { ps-worker-tensorboard-web-0 = "127.0.0.1:6006" } }
  }

  override_resource {
    target = trainyard_autoscaling_policy.this
    values = { id = "lab/ps-worker/worker" }
  }

  variables {
    log_dir     = "/srv/logs"
    tensorboard = {}
    autoscale   = { max = 4 }
  }

  assert {
    condition     = output.id == "lab/ps-worker" && output.members["ps-worker-ps-0"] == "127.0.0.1:8000" && output.placements["ps-worker-ps-0"] == "local" && output.path == "/srv/files"
    error_message = "The outputs must say which members run where."
  }

  assert {
    condition     = output.tensorboard == "http://127.0.0.1:6006" && output.policy == "lab/ps-worker/worker"
    error_message = "The outputs must say where TensorBoard is, and name the policy."
  }
}
