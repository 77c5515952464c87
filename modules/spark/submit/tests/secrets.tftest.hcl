# Secrets are passed to the driver, and shown nowhere.
# Only for Terraform: OpenTofu mocks in another way.

mock_provider "trainyard" {
  mock_resource "trainyard_files" {
    defaults = { path = "/srv/files" }
  }
}

variables {
  spark = { cluster = { name = "lab" }, master = "spark://127.0.0.1:7077" }
}

run "swarm" {
  command = plan

  variables {
    spark         = { cluster = { name = "lab", engine = "swarm" }, master = "spark://spark-master-0:7077", runtime = { image = "spark:4" } }
    secrets       = { token = { version = "2" }, key = { version = "1", target = "/etc/key", mode = "0440" } }
    secret_values = { token = "hunter2", key = "swordfish" }
  }

  assert {
    condition = (
      join(" ", keys(trainyard_group.this.container.secrets)) == "key token" && trainyard_group.this.container.secrets["token"].version == "2" && trainyard_group.this.container.secrets["token"].target == null
      && trainyard_group.this.container.secrets["key"].target == "/etc/key" && trainyard_group.this.container.secrets["key"].mode == "0440" && length(trainyard_group.this.container.configs) > 0
    )
    error_message = "The driver must get the secrets beside the module's own program."
  }

  assert {
    condition     = alltrue([for secret in values(trainyard_group.this.container.secrets) : secret.value == null])
    error_message = "The values must not be in the plan."
  }
}

run "programs" {
  command = plan

  variables {
    spark         = { cluster = { name = "lab", engine = "systemd", endpoint = "ssh://ops@gpu1" }, master = "spark://gpu1:7077" }
    secrets       = { token = { version = "1" } }
    secret_values = { token = "hunter2" }
  }

  assert {
    condition     = trainyard_group.this.container.configs == null && trainyard_group.this.container.secrets["token"].version == "1"
    error_message = "Drivers on bare hosts must get the secrets, too."
  }
}

run "submitted" {
  variables {
    spark = {
      cluster  = { name = "lab", engine = "systemd", endpoint = "ssh://ops@gpu1" }
      master   = "spark://gpu1:7077"
      executor = { workers = 4 }
    }
    secrets       = { token = { version = "1" } }
    secret_values = { token = "hunter2" }
  }

  assert {
    condition     = output.workers == 4
    error_message = "The application must get all workers."
  }
}

run "with_another_version_on_a_smaller_cluster" {
  command = plan

  variables {
    spark = {
      cluster  = { name = "lab", engine = "systemd", endpoint = "ssh://ops@gpu1" }
      master   = "spark://gpu1:7077"
      executor = { workers = 2 }
    }
    secrets       = { token = { version = "2" } }
    secret_values = { token = "swordfish" }
  }

  assert {
    condition     = output.workers == 2
    error_message = "A new version must submit the application again, with the cluster's current size."
  }
}
