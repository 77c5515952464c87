# How members find each other and their data, by engine.
# Only for Terraform: OpenTofu mocks in another way.

mock_provider "trainyard" {
  mock_resource "trainyard_files" {
    defaults = { path = "/srv/files" }
  }
}

variables {
  secret_values = {} # an apply of a root module requires all of its ephemeral variables
}

run "swarm" {
  variables {
    cluster    = { name = "lab", engine = "swarm" }
    image      = "kafka:4.3.1"
    mounts     = [{ source = "/etc/keys", target = "/etc/keys", read_only = true }]
    controller = { replicas = 3, placement = { strategy = "one_per_host" } }
    broker     = { replicas = 4, mounts = [{ type = "volume", source = "nas", target = "/var/lib/kafka", driver = { name = "local", options = { type = "nfs" } } }] }
    rebalancer = {}
  }

  assert {
    condition     = output.controllers == "kafka-controllers-controller-0:9192,kafka-controllers-controller-1:9192,kafka-controllers-controller-2:9192" && output.bootstrap_servers == "kafka-broker-0:9092,kafka-broker-1:9092,kafka-broker-2:9092,kafka-broker-3:9092" && output.rebalancer == "http://kafka-rebalancer-server-0:9292"
    error_message = "On a Swarm, members are reached by name."
  }

  assert {
    condition     = strcontains(trainyard_group.this.roles.broker.command[2], "controller.quorum.voters=1000@kafka-controllers-controller-0:9192,1001@kafka-controllers-controller-1:9192,1002@kafka-controllers-controller-2:9192\n")
    error_message = "Brokers must know the controllers."
  }

  assert {
    condition = (
      strcontains(trainyard_group.this.roles.broker.command[2], "folder=/var/lib/kafka/$TRAINYARD_MEMBER\n")
      && trainyard_group.this.roles.broker.mounts[*].source == tolist(["/etc/keys", "nas"]) && trainyard_group.this.roles.broker.mounts[1].driver.options.type == "nfs"
      && trainyard_group.controllers.roles.controller.mounts[*].source == tolist(["/etc/keys", "kafka"]) && trainyard_group.controllers.roles.controller.mounts[1].type == "volume"
    )
    error_message = "Data must be in a volume named after the group, or in the user's own."
  }

  assert {
    condition     = trainyard_group.rebalancer[0].image == "kafka:4.3.1" && trainyard_group.rebalancer[0].roles.server.command[0] == "rebalancer" && trainyard_group.rebalancer[0].roles.server.mounts[*].target == var.mounts[*].target && length(trainyard_files.rebalancer) == 0
    error_message = "The rebalancer is in the image."
  }
}

run "containers_on_bare_hosts" {
  variables {
    cluster    = { name = "lab", engine = "systemd", endpoint = "ssh://ops@kafka1" }
    image      = "kafka:4.3.1"
    broker     = { data_dir = "/mnt/nvme/kafka" }
    rebalancer = { files = "tests/cluster/bin", image = "debian:12" }
  }

  assert {
    condition = (
      trainyard_group.this.roles.broker.mounts[0].source == "/mnt/nvme/kafka" && trainyard_group.this.roles.broker.mounts[0].type == "bind" && trainyard_group.this.roles.broker.mounts[0].target == "/var/lib/kafka"
      && strcontains(trainyard_group.this.roles.broker.command[2], "folder=/var/lib/kafka/$TRAINYARD_MEMBER\n")
      && trainyard_group.controllers.roles.controller.mounts[0].type == "volume" && trainyard_group.controllers.roles.controller.mounts[0].source == "kafka"
    )
    error_message = "Containers must see their host's folder, or a volume."
  }

  assert {
    condition     = trainyard_group.rebalancer[0].image == "debian:12" && trainyard_group.rebalancer[0].roles.server.mounts[*].target == tolist(["/srv/files"]) && trainyard_group.rebalancer[0].roles.server.mounts[0].read_only
    error_message = "The rebalancer's container must see the program."
  }
}
