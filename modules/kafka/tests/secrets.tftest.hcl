# Secrets are passed to the members, and shown nowhere.
# Only for Terraform: OpenTofu mocks in another way.

mock_provider "trainyard" {}

variables {
  cluster = { name = "lab" }
}

run "swarm" {
  command = plan

  variables {
    cluster       = { name = "lab", engine = "swarm" }
    image         = "kafka:4.3.1"
    secrets       = { "kafka.properties" = { version = "2" }, key = { version = "1", target = "/etc/key", mode = "0440" } }
    secret_values = { "kafka.properties" = "keystore=hunter2", key = "swordfish" }
  }

  assert {
    condition = alltrue([
      for secrets in [trainyard_group.this.container.secrets, trainyard_group.controllers.container.secrets] :
      join(" ", keys(secrets)) == "kafka.properties key" && secrets["kafka.properties"].version == "2" && secrets["kafka.properties"].target == null
      && secrets["key"].target == "/etc/key" && secrets["key"].mode == "0440" && alltrue([for secret in values(secrets) : secret.value == null])
    ])
    error_message = "Controllers and brokers must get the secrets, and the plan must not have the values."
  }

  assert {
    condition     = strcontains(trainyard_group.this.roles.broker.command[2], "\nln -sfn /run/secrets secrets\n") && strcontains(trainyard_group.controllers.roles.controller.command[2], "\nln -sfn /run/secrets secrets\n")
    error_message = "Members must have a link to the secrets."
  }
}

run "programs" {
  command = plan

  variables {
    cluster       = { name = "lab", engine = "systemd", endpoint = "ssh://ops@kafka1" }
    secrets       = { "kafka.properties" = { version = "1" } }
    secret_values = { "kafka.properties" = "keystore=hunter2" }
  }

  assert {
    condition     = trainyard_group.this.container.secrets["kafka.properties"].version == "1" && strcontains(trainyard_group.controllers.roles.controller.command[2], "\nln -sfn \"$CREDENTIALS_DIRECTORY\" secrets\n")
    error_message = "Members on bare hosts must get the secrets, too."
  }
}

run "none" {
  command = plan

  assert {
    condition     = trainyard_group.this.container == null && trainyard_group.controllers.container == null && !strcontains(trainyard_group.controllers.roles.controller.command[2], "ln -sfn")
    error_message = "By default, there are no secrets."
  }
}
