# Secrets are passed to Prometheus, and shown nowhere.
# Only for Terraform: OpenTofu mocks in another way.

mock_provider "trainyard" {}

variables {
  cluster = { name = "lab", engine = "swarm" }
}

run "secrets" {
  command = plan

  variables {
    grafana          = {}
    grafana_password = "hunter2"
    scrape_configs   = [{ job_name = "app", basic_auth = { username = "ops", password_file = "/run/secrets/app" } }]
    secrets          = { app = { version = "2" }, key = { version = "1", target = "/etc/key", mode = "0400" } }
    secret_values    = { app = "swordfish", key = "sesame" }
  }

  assert {
    condition = (
      join(" ", keys(trainyard_group.this.roles.prometheus.container.secrets)) == "app key"
      && trainyard_group.this.roles.prometheus.container.secrets["app"].version == "2" && trainyard_group.this.roles.prometheus.container.secrets["app"].mode == "0444"
      && trainyard_group.this.roles.prometheus.container.secrets["key"].target == "/etc/key" && trainyard_group.this.roles.prometheus.container.secrets["key"].mode == "0400"
    )
    error_message = "Prometheus must get the secrets, readable for its user."
  }

  assert {
    condition     = alltrue([for secret in values(trainyard_group.this.roles.prometheus.container.secrets) : secret.value == null])
    error_message = "The values must not be in the plan."
  }

  assert {
    condition     = join(" ", keys(trainyard_group.this.roles.grafana.container.secrets)) == "password"
    error_message = "Grafana must get its own password only."
  }
}

run "none" {
  command = plan

  assert {
    condition     = trainyard_group.this.roles.prometheus.container.secrets == null
    error_message = "By default, there are no secrets."
  }
}
