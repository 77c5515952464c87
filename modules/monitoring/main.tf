locals {
  # Bare hosts have no network of the cluster's own: agents and the controller listen at the address by which hosts reach
  # each other, if the cluster says at which port.
  bare = var.cluster.engine == "systemd"
  reached = { for name, host in coalesce(var.cluster.hosts, {}) : name => regex(
    "^(?:ssh://)?(?:[^@/]*@)?(\\[[^]]+\\]|[0-9a-fA-F]*:[0-9a-fA-F]*:[0-9a-fA-F:.]*|[^:/]+)",
    coalesce(host.advertise_address, host.address),
  )[0] if local.bare }
  addresses = { for name, at in local.reached : name => can(regex("^[^[].*:", at)) ? "[${at}]" : at }

  # On a Swarm, one name resolves to all agents of the cluster on its network, and another one to its controller, which
  # reports members' names and autoscaling policies.
  agents_port     = try(local.bare ? var.cluster.agent.metrics_port : 9465, 9465)
  controller_port = local.agents_port + 1
  agents          = local.bare ? values(local.addresses) : ["trainyard-${var.cluster.name}-agent"]
  controller      = local.bare ? [for name, address in local.addresses : address if var.cluster.hosts[name].role == "manager"] : ["trainyard-${var.cluster.name}-controller"]

  prometheus_yml = yamlencode(merge(
    {
      global = {
        scrape_interval = var.scrape_interval
        scrape_timeout  = can(regex("^[1-9]s$", var.scrape_interval)) ? var.scrape_interval : "10s" # never longer than the interval
      }

      scrape_configs = concat(
        [for job in [
          { name = "trainyard", at = local.agents, port = local.agents_port },
          { name = "trainyard-controller", at = local.controller, port = local.controller_port },
          ] : { for key, value in {
            job_name       = job.name
            static_configs = local.bare ? [{ targets = [for host in job.at : "${host}:${job.port}"] }] : null
            dns_sd_configs = local.bare ? null : [{ names = job.at, type = "A", port = job.port, refresh_interval = "10s" }]
        } : key => value if value != null }],
        [for job in var.scrape_configs : job],
      )
    },
    length(local.rule_files) == 0 ? {} : { rule_files = ["${local.rules}/*.yml"] },
    length(var.alertmanagers) == 0 ? {} : { alerting = { alertmanagers = [{ static_configs = [{ targets = var.alertmanagers }] }] } },
  ))

  rules = "/etc/prometheus/rules"
  rule_files = {
    for name, content in merge(
      var.alerts ? { trainyard = file("${path.module}/alerts/trainyard.yml") } : {},
      var.rule_files,
    ) : "${name}.rules" => { target = "${local.rules}/${name}.yml", content = content }
  }

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

  # The values are write-only: Terraform stores only the versions.
  secrets = length(var.secrets) == 0 ? null : {
    for name, secret in var.secrets : name => {
      value   = var.secret_values[name]
      version = secret.version
      target  = secret.target
      mode    = coalesce(secret.mode, "0444") # Prometheus runs as a separate user
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
        local.bare ? "--web.listen-address={{ .Address }}" : "--web.listen-address=:${var.port}",
      ],
      var.retention_size == null ? [] : ["--storage.tsdb.retention.size=${var.retention_size}"],
    )

    resources = var.resources
    placement = var.placement
    mounts    = [{ type = "volume", source = "${var.cluster.name}-${var.name}-prometheus", target = "/prometheus" }]

    container = {
      configs = merge(local.rule_files, { "prometheus.yml" = { target = "/etc/prometheus/prometheus.yml", content = local.prometheus_yml } })
      secrets = local.secrets
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

        env = merge(
          {
            PROMETHEUS_ADDRESS               = "{{ address \"prometheus\" 0 }}"
            GF_SERVER_HTTP_PORT              = "{{ .Port }}"
            GF_SECURITY_ADMIN_PASSWORD__FILE = "/run/secrets/password"
            GF_ANALYTICS_REPORTING_ENABLED   = "false"
            GF_ANALYTICS_CHECK_FOR_UPDATES   = "false"
          },
          local.bare ? { GF_SERVER_HTTP_ADDR = "{{ hostname .Address }}" } : {},
        )

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
