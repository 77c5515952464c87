locals {
  # The name that resolves to all agents of the cluster on its network, and the port that Prometheus scrapes.
  agents      = "trainyard-${var.cluster.name}-agent"
  agents_port = 9465

  # The same for its controller, which reports members' names and autoscaling policies.
  controller      = "trainyard-${var.cluster.name}-controller"
  controller_port = 9466

  prometheus_yml = yamlencode({
    global = {
      scrape_interval = var.scrape_interval
      scrape_timeout  = can(regex("^[1-9]s$", var.scrape_interval)) ? var.scrape_interval : "10s" # never longer than the interval
    }

    scrape_configs = concat(
      [for job in [
        { name = "trainyard", at = local.agents, port = local.agents_port },
        { name = "trainyard-controller", at = local.controller, port = local.controller_port },
        ] : {
        job_name = job.name
        dns_sd_configs = [{
          names            = [job.at]
          type             = "A"
          port             = job.port
          refresh_interval = "10s"
        }]
      }],
      [for job in var.scrape_configs : job],
    )
  })

  # Grafana's configuration at its start. It replaces $NAME by environment variables.
  grafana_files = {
    "datasource.yaml" = {
      target = "/etc/grafana/provisioning/datasources/trainyard.yaml"
      content = yamlencode({
        apiVersion = 1
        datasources = [{
          name      = "Trainyard"
          uid       = "trainyard"
          type      = "prometheus"
          access    = "proxy"
          url       = "http://$PROMETHEUS_ADDRESS"
          isDefault = true
          jsonData  = { timeInterval = var.scrape_interval }
        }]
      })
    }

    "dashboards.yaml" = {
      target = "/etc/grafana/provisioning/dashboards/trainyard.yaml"
      content = yamlencode({
        apiVersion = 1
        providers = [{
          name    = "trainyard"
          folder  = "Trainyard"
          type    = "file"
          options = { path = local.dashboards }
        }]
      })
    }
  }

  dashboards = "/etc/grafana/dashboards"
  dashboard_files = {
    for file in fileset("${path.module}/dashboards", "*.json") : file => {
      target  = "${local.dashboards}/${file}"
      content = file("${path.module}/dashboards/${file}")
    }
  }

  prometheus = {
    image = var.image
    port  = var.port

    args = concat(
      [
        "--config.file=/etc/prometheus/prometheus.yml",
        "--storage.tsdb.path=/prometheus",
        "--storage.tsdb.retention.time=${var.retention}",
        "--web.listen-address=:${var.port}",
      ],
      var.retention_size == null ? [] : ["--storage.tsdb.retention.size=${var.retention_size}"],
    )

    resources = var.resources
    placement = var.placement
    mounts    = [{ type = "volume", source = "${var.cluster.name}-${var.name}-prometheus", target = "/prometheus" }]

    container = {
      configs = { "prometheus.yml" = { target = "/etc/prometheus/prometheus.yml", content = local.prometheus_yml } }
      ports   = var.published_port == null ? null : { web = { target = var.port, published = var.published_port } }
    }

    restart      = { condition = "always" }
    grace_period = "1m" # to write what is in memory
  }
}

resource "trainyard_group" "this" {
  cluster = { name = var.cluster.name, engine = var.cluster.engine, endpoint = var.cluster.endpoint }
  name    = var.name

  roles = merge(
    { prometheus = local.prometheus },
    var.grafana == null ? {} : {
      grafana = {
        image = var.grafana.image
        port  = var.grafana.port

        env = {
          PROMETHEUS_ADDRESS               = "{{ address \"prometheus\" 0 }}"
          GF_SERVER_HTTP_PORT              = "{{ .Port }}"
          GF_SECURITY_ADMIN_PASSWORD__FILE = "/run/secrets/password"
          GF_ANALYTICS_REPORTING_ENABLED   = "false"
          GF_ANALYTICS_CHECK_FOR_UPDATES   = "false"
        }

        placement = var.placement
        mounts    = [{ type = "volume", source = "${var.cluster.name}-${var.name}-grafana", target = "/var/lib/grafana" }]

        container = {
          configs = merge(local.grafana_files, local.dashboard_files)
          # Grafana runs as a separate user, who has to be able to read it.
          secrets = { password = { value = var.grafana_password, version = var.grafana.password_version, mode = "0444" } }
          ports   = var.grafana.published_port == null ? null : { web = { target = var.grafana.port, published = var.grafana.published_port } }
        }

        restart = { condition = "always" }
      }
    },
  )

  completion = { when = "never" }
}
