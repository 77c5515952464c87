# Without Grafana.

mock_provider "trainyard" {}

variables {
  cluster       = { name = "lab", engine = "swarm" }
  secret_values = {} # an apply of a root module requires all of its ephemeral variables
}

run "defaults" {
  command = plan

  assert {
    condition     = trainyard_group.this.name == "monitoring" && join(" ", keys(trainyard_group.this.roles)) == "prometheus"
    error_message = "The group must consist of Prometheus only."
  }

  assert {
    condition     = trainyard_group.this.completion.when == "never"
    error_message = "A service never completes."
  }

  assert {
    condition     = trainyard_group.this.roles.prometheus.container.ports == null
    error_message = "No port may be published by default."
  }

  assert {
    condition = yamldecode(trainyard_group.this.roles.prometheus.container.configs["prometheus.yml"].content) == {
      global = { scrape_interval = "15s", scrape_timeout = "10s" }
      scrape_configs = [
        { job_name = "trainyard", dns_sd_configs = [{ names = ["trainyard-lab-agent"], type = "A", port = 9465, refresh_interval = "10s" }] },
        { job_name = "trainyard-controller", dns_sd_configs = [{ names = ["trainyard-lab-controller"], type = "A", port = 9466, refresh_interval = "10s" }] },
      ]
      rule_files = ["/etc/prometheus/rules/*.yml"]
    }
    error_message = "Prometheus must find the cluster's agents and controller by name."
  }

  assert {
    condition = (
      trainyard_group.this.roles.prometheus.container.configs["trainyard.rules"].target == "/etc/prometheus/rules/trainyard.yml"
      && trainyard_group.this.roles.prometheus.container.configs["trainyard.rules"].content == file("alerts/trainyard.yml")
    )
    error_message = "Prometheus must find the alert rules."
  }

  assert {
    condition     = contains(trainyard_group.this.roles.prometheus.args, "--storage.tsdb.retention.time=15d")
    error_message = "Samples are kept for 15 days."
  }

  assert {
    condition     = output.agents == "trainyard-lab-agent:9465" && output.controller == "trainyard-lab-controller:9466" && output.grafana_endpoint == null
    error_message = "The outputs must name the agents and the controller, and no Grafana."
  }
}

run "settings" {
  command = plan

  variables {
    name            = "watch"
    port            = 9091
    published_port  = 80
    retention       = "1d12h"
    retention_size  = "50GB"
    scrape_interval = "5s"
    scrape_configs  = [{ job_name = "dcgm", static_configs = [{ targets = ["gpu1:9400"] }] }, { job_name = "cadvisor" }]
    placement       = { hosts = ["gpu1"] }
    resources       = { memory_mib = 2048 }
  }

  assert {
    condition = trainyard_group.this.roles.prometheus.args == tolist([
      "--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus", "--storage.tsdb.retention.time=1d12h",
      "--web.listen-address=:9091", "--storage.tsdb.retention.size=50GB",
    ])
    error_message = "The arguments must be as configured."
  }

  assert {
    condition = (
      trainyard_group.this.roles.prometheus.port == 9091
      && trainyard_group.this.roles.prometheus.container.ports.web.target == 9091
      && trainyard_group.this.roles.prometheus.container.ports.web.published == 80
      && trainyard_group.this.roles.prometheus.placement.hosts == tolist(["gpu1"])
      && trainyard_group.this.roles.prometheus.resources.memory_mib == 2048
      && trainyard_group.this.roles.prometheus.mounts[0].source == "lab-watch-prometheus"
    )
    error_message = "The role must be as configured."
  }

  assert {
    condition = (
      yamldecode(trainyard_group.this.roles.prometheus.container.configs["prometheus.yml"].content).global.scrape_timeout == "5s"
      && yamldecode(trainyard_group.this.roles.prometheus.container.configs["prometheus.yml"].content).scrape_configs[*].job_name == ["trainyard", "trainyard-controller", "dcgm", "cadvisor"]
    )
    error_message = "The timeout must not exceed the interval, and additional jobs must be scraped."
  }
}

run "alerting" {
  command = plan

  variables {
    alerts        = false
    rule_files    = { mine = "groups: []" }
    alertmanagers = ["alerts.example.com:9093", "[2001:db8::9]:9093"]
  }

  assert {
    condition     = join(" ", keys(trainyard_group.this.roles.prometheus.container.configs)) == "mine.rules prometheus.yml"
    error_message = "The rules must be only those given."
  }

  assert {
    condition = yamldecode(trainyard_group.this.roles.prometheus.container.configs["prometheus.yml"].content).alerting == {
      alertmanagers = [{ static_configs = [{ targets = ["alerts.example.com:9093", "[2001:db8::9]:9093"] }] }]
    }
    error_message = "Alerts must be sent to the Alertmanagers."
  }
}

# The outputs describe what runs.
run "outputs" {
  # An apply of a root module requires all of its ephemeral variables.
  variables {
    grafana_password = ""
  }

  override_resource {
    target = trainyard_group.this
    values = {
      id         = "lab/monitoring"
      members    = { monitoring-prometheus-0 = "monitoring-prometheus-0:9090" }
      placements = { monitoring-prometheus-0 = "gpu1" }
    }
  }

  assert {
    condition     = output.id == "lab/monitoring" && output.endpoint == "http://monitoring-prometheus-0:9090" && output.host == "gpu1"
    error_message = "The outputs must say where Prometheus runs."
  }

  assert {
    condition     = output.grafana_endpoint == null && output.grafana_host == null
    error_message = "There is no Grafana."
  }
}
