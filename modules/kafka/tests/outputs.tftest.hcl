# On bare hosts, members get the addresses of the others.

mock_provider "trainyard" {
  mock_resource "trainyard_files" {
    defaults = { path = "/srv/files" }
  }
}

variables {
  secret_values = {} # an apply of a root module requires all of its ephemeral variables
}

run "bare_hosts" {
  variables {
    cluster    = { name = "lab", engine = "systemd", endpoint = "ssh://ops@kafka1" }
    controller = { replicas = 3 }
    broker     = { replicas = 2 }
    rebalancer = { files = "tests/cluster/bin" }
  }

  override_resource {
    target = trainyard_group.controllers
    values = {
      id         = "lab/kafka-controllers"
      placements = { "kafka-controllers-controller-0" = "kafka1" }
      members = {
        "kafka-controllers-controller-0" = "192.0.2.1:9192", "kafka-controllers-controller-1" = "192.0.2.2:9192", "kafka-controllers-controller-2" = "192.0.2.1:9193"
      }
    }
  }

  override_resource {
    target = trainyard_group.this
    values = { members = { "kafka-broker-0" = "192.0.2.1:9092", "kafka-broker-1" = "192.0.2.2:9092" }, placements = { "kafka-broker-1" = "kafka2" } }
  }

  override_resource {
    target = trainyard_group.rebalancer
    values = { members = { "kafka-rebalancer-server-0" = "192.0.2.2:9292" } }
  }

  assert {
    condition     = strcontains(trainyard_group.this.roles.broker.command[2], "controller.quorum.voters=1000@192.0.2.1:9192,1001@192.0.2.2:9192,1002@192.0.2.1:9193\n")
    error_message = "Brokers must know the controllers' addresses."
  }

  assert {
    condition     = output.bootstrap_servers == "192.0.2.1:9092,192.0.2.2:9092" && output.rebalancer == "http://192.0.2.2:9292" && trainyard_group.rebalancer[0].roles.server.command[2] == "192.0.2.1:9092,192.0.2.2:9092"
    error_message = "On bare hosts, members must be at their hosts' addresses."
  }

  assert {
    condition     = trainyard_group.rebalancer[0].roles.server.command[0] == "/srv/files/rebalancer" && trainyard_group.rebalancer[0].roles.server.mounts == null && trainyard_group.this.roles.broker.mounts == null
    error_message = "The rebalancer must be copied to the hosts, and data must be in working directories."
  }

  assert {
    condition     = output.placements == tomap({ "kafka-controllers-controller-0" = "kafka1", "kafka-broker-1" = "kafka2" }) && length(output.members) == 5
    error_message = "The outputs must say which members run where."
  }
}
