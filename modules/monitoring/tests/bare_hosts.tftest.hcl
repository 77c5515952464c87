# On bare hosts, Prometheus listens and scrapes at the addresses at which hosts reach each other.

mock_provider "trainyard" {}

variables {
  cluster = {
    name   = "lab"
    engine = "systemd"
    agent  = { metrics_port = 9500 }
    hosts = {
      gpu1 = { address = "ssh://ops@gpu1.example.com:2222", role = "manager" }
      gpu2 = { address = "ssh://ops@203.0.113.2", advertise_address = "10.0.0.2:22" }
      gpu3 = { address = "ops@[2001:db8::3]:22" }
      gpu4 = { address = "ssh://gpu4", advertise_address = "fd00::4" }
    }
  }
  grafana          = {}
  grafana_password = "hunter2"
}

run "bare_hosts" {
  command = plan

  assert {
    condition = yamldecode(trainyard_group.this.roles.prometheus.container.configs["prometheus.yml"].content).scrape_configs == [
      { job_name = "trainyard", static_configs = [{ targets = ["gpu1.example.com:9500", "10.0.0.2:9500", "[2001:db8::3]:9500", "[fd00::4]:9500"] }] },
      { job_name = "trainyard-controller", static_configs = [{ targets = ["gpu1.example.com:9501"] }] },
    ]
    error_message = "Prometheus must scrape the agent of each host, and the controller on the manager."
  }

  assert {
    condition = (
      contains(trainyard_group.this.roles.prometheus.args, "--web.listen-address={{ .Address }}")
      && trainyard_group.this.roles.grafana.env.GF_SERVER_HTTP_ADDR == "{{ hostname .Address }}"
    )
    error_message = "Neither may listen at other addresses of its host."
  }

  assert {
    condition     = output.agents == "gpu1.example.com:9500,10.0.0.2:9500,[2001:db8::3]:9500,[fd00::4]:9500" && output.controller == "gpu1.example.com:9501"
    error_message = "The outputs must name all agents and the controller."
  }
}

run "published" {
  command = plan

  variables {
    published_port = 9090
    grafana        = { published_port = 3000 }
  }

  expect_failures = [var.published_port, var.grafana]
}

run "without_a_port" {
  command = plan

  variables {
    cluster = { name = "lab", engine = "systemd", hosts = { gpu1 = { address = "ssh://gpu1", role = "manager" } } }
  }

  expect_failures = [var.cluster]
}

run "without_hosts" {
  command = plan

  variables {
    cluster = { name = "lab", engine = "systemd", agent = { metrics_port = 9465 } }
  }

  expect_failures = [var.cluster]
}

run "cluster" {
  module {
    source = "./tests/cluster"
  }

  override_data {
    target = data.trainyard_cluster.lab
    values = { agent = { enabled = true, metrics_port = 9500, image = null } }
  }
}

run "cluster_of_another_configuration" {
  command = plan

  variables {
    # A mock has no hosts.
    cluster = merge(run.cluster.cluster, {
      hosts = {
        gpu1 = { address = "ssh://ops@gpu1", advertise_address = null, role = "manager" }
        gpu2 = { address = "ssh://ops@gpu2", advertise_address = "10.0.0.2", role = "worker" }
      }
    })
  }

  assert {
    condition     = output.agents == "gpu1:9500,10.0.0.2:9500" && output.controller == "gpu1:9501"
    error_message = "The cluster may also come from the data source."
  }
}
