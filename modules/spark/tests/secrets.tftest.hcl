# Secrets are passed to the master and the workers, and shown nowhere.
# Only for Terraform: OpenTofu mocks in another way.

mock_provider "trainyard" {}

variables {
  cluster = { name = "lab" }
}

run "swarm" {
  command = plan

  variables {
    cluster       = { name = "lab", engine = "swarm" }
    image         = "spark:4"
    master        = { published_port = 8080 }
    worker        = { gpus = { pool = "v100" } }
    secrets       = { token = { version = "2" }, key = { version = "1", target = "/etc/key", mode = "0440" } }
    secret_values = { token = "hunter2", key = "swordfish" }
  }

  assert {
    condition = alltrue([
      for role in [trainyard_group.this.roles.master, trainyard_group.this.roles.worker] :
      join(" ", keys(role.container.secrets)) == "key token" && role.container.secrets["token"].version == "2" && role.container.secrets["token"].target == null
      && role.container.secrets["key"].target == "/etc/key" && role.container.secrets["key"].mode == "0440" && alltrue([for secret in values(role.container.secrets) : secret.value == null])
    ])
    error_message = "The master and the workers must get the secrets, and the plan must not have the values."
  }

  assert {
    condition     = trainyard_group.this.roles.master.container.ports.web.published == 8080 && length(trainyard_group.this.roles.worker.container.configs) == 1
    error_message = "They must keep what else their containers have."
  }
}

run "programs" {
  command = plan

  variables {
    cluster       = { name = "lab", engine = "systemd", endpoint = "ssh://ops@gpu1" }
    secrets       = { token = { version = "1" } }
    secret_values = { token = "hunter2" }
  }

  assert {
    condition = alltrue([
      for role in [trainyard_group.this.roles.master, trainyard_group.this.roles.worker] :
      role.container.configs == null && role.container.ports == null && role.container.secrets["token"].version == "1"
    ])
    error_message = "Members on bare hosts must get the secrets, too."
  }
}

run "none" {
  command = plan

  assert {
    condition     = trainyard_group.this.roles.master.container == null && trainyard_group.this.roles.worker.container == null
    error_message = "By default, there are no secrets."
  }
}
