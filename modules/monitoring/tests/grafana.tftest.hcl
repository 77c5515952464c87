# Grafana with Prometheus.

mock_provider "trainyard" {}

variables {
  cluster          = { name = "lab", engine = "swarm" }
  grafana          = {}
  grafana_password = "hunter2"
}

run "defaults" {
  command = plan

  assert {
    condition     = join(" ", keys(trainyard_group.this.roles)) == "grafana prometheus"
    error_message = "The group must consist of Prometheus and Grafana."
  }

  assert {
    condition     = trainyard_group.this.roles.grafana.container.ports == null
    error_message = "No port may be published by default."
  }

  assert {
    condition = (
      yamldecode(trainyard_group.this.roles.grafana.container.configs["datasource.yaml"].content).datasources[0].url == "http://$PROMETHEUS_ADDRESS"
      && trainyard_group.this.roles.grafana.env.PROMETHEUS_ADDRESS == "{{ address \"prometheus\" 0 }}"
    )
    error_message = "Grafana must find Prometheus."
  }

  assert {
    condition = alltrue([
      for name in ["autoscaling", "cluster", "gpus", "groups"] :
      trainyard_group.this.roles.grafana.container.configs["${name}.json"].target == "/etc/grafana/dashboards/${name}.json"
    ])
    error_message = "Grafana must find its dashboards."
  }

  # Dashboards find the data source by its uid.
  assert {
    condition = alltrue(flatten([
      for name in ["autoscaling", "cluster", "gpus", "groups"] : [
        for panel in jsondecode(trainyard_group.this.roles.grafana.container.configs["${name}.json"].content).panels :
        panel.type == "row" ? true : panel.datasource.uid == yamldecode(trainyard_group.this.roles.grafana.container.configs["datasource.yaml"].content).datasources[0].uid
      ]
    ]))
    error_message = "Each panel must query the module's Prometheus."
  }

  # Without transformations, Grafana shows Prometheus' own labels and the metric's name as columns.
  assert {
    condition = alltrue(flatten([
      for name in ["autoscaling", "cluster", "gpus", "groups"] : [
        for panel in jsondecode(trainyard_group.this.roles.grafana.container.configs["${name}.json"].content).panels :
        panel.type != "table" ? true : alltrue([
          for column in ["Time", "__name__", "instance", "job"] : try(panel.transformations[0].options.excludeByName[column], false)
        ])
      ]
    ]))
    error_message = "Tables must show only what tells GPUs apart, and the value."
  }

  # Without thresholds, Grafana shows values from 80 on in red.
  assert {
    condition = alltrue(flatten([
      for name in ["autoscaling", "cluster", "gpus", "groups"] : [
        for panel in jsondecode(trainyard_group.this.roles.grafana.container.configs["${name}.json"].content).panels :
        panel.type != "stat" ? true : can(panel.fieldConfig.defaults.thresholds)
      ]
    ]))
    error_message = "Hosts and GPUs must not turn red because there are many of them."
  }

  # Legends are beside the graphs.
  assert {
    condition = alltrue(flatten([
      for name in ["autoscaling", "cluster", "gpus", "groups"] : [
        for panel in jsondecode(trainyard_group.this.roles.grafana.container.configs["${name}.json"].content).panels : [
          for target in panel.targets : !strcontains(target.legendFormat, "{{uuid}}") && !strcontains(target.legendFormat, "{{role}} {{member}}")
        ]
      ]
    ]))
    error_message = "Legends must leave room for the graphs: no whole UUIDs, and no groups and roles beside members, whose names begin with them."
  }
}

run "published" {
  command = plan

  variables {
    grafana   = { image = "registry.example.com/grafana:1", published_port = 80 }
    placement = { labels = { disk = "large" } }
  }

  assert {
    condition = (
      trainyard_group.this.roles.grafana.image == "registry.example.com/grafana:1"
      && trainyard_group.this.roles.grafana.container.ports.web.published == 80
      && trainyard_group.this.roles.grafana.container.ports.web.target == 3000
      && trainyard_group.this.roles.grafana.placement.labels.disk == "large"
    )
    error_message = "Grafana must be as configured."
  }
}

run "without_a_password" {
  command = plan

  variables {
    grafana_password = null
  }

  expect_failures = [var.grafana_password]
}
