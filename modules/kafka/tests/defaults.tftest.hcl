# The defaults: a controller, three brokers, and nothing else.
# Only for Terraform: OpenTofu mocks in another way.

mock_provider "trainyard" {}

variables {
  cluster       = { name = "lab" }
  secret_values = {} # an apply of a root module requires all of its ephemeral variables
}

run "defaults" {
  assert {
    condition = (
      trainyard_group.controllers.name == "kafka-controllers" && trainyard_group.this.name == "kafka"
      && trainyard_group.controllers.roles.controller.replicas == 1 && trainyard_group.controllers.roles.controller.port == 9192
      && trainyard_group.this.roles.broker.replicas == 3 && trainyard_group.this.roles.broker.port == 9092
    )
    error_message = "There must be one controller and three brokers, in separate groups."
  }

  assert {
    condition = (
      strcontains(trainyard_group.controllers.roles.controller.command[2], "process.roles=controller\n")
      && strcontains(trainyard_group.controllers.roles.controller.command[2], "node.id={{ printf \"1%03d\" .Index }}\n")
      && strcontains(trainyard_group.controllers.roles.controller.command[2], "controller.quorum.voters=1000@{{ address \"controller\" 0 }}\n")
      && strcontains(trainyard_group.controllers.roles.controller.command[2], "-Xmx512m")
    )
    error_message = "The controller must have that role, and be a voter."
  }

  assert {
    condition = (
      strcontains(trainyard_group.this.roles.broker.command[2], "process.roles=broker\n")
      && strcontains(trainyard_group.this.roles.broker.command[2], "node.id={{ .Index }}\n")
      && strcontains(trainyard_group.this.roles.broker.command[2], "listeners=PLAINTEXT://{{ .Address }}\n")
      && strcontains(trainyard_group.this.roles.broker.command[2], "folder=\"$PWD\"\n")
      && strcontains(trainyard_group.this.roles.broker.command[2], "-Xmx1024m")
    )
    error_message = "A broker's node ID must be its index, and its data in its working directory."
  }

  assert {
    condition = alltrue([
      for property in [
        "default.replication.factor=3", "min.insync.replicas=2", "offsets.topic.replication.factor=3", "transaction.state.log.replication.factor=3",
        "transaction.state.log.min.isr=2", "share.coordinator.state.topic.replication.factor=3", "share.coordinator.state.topic.min.isr=2",
      ] : strcontains(trainyard_group.this.roles.broker.command[2], "\n${property}\n") && strcontains(trainyard_group.controllers.roles.controller.command[2], "\n${property}\n")
    ])
    error_message = "Topics must have three replicas, two of them in sync."
  }

  assert {
    condition     = trainyard_group.this.roles.broker.on_scale == "none" && trainyard_group.this.roles.broker.restart.condition == "always" && trainyard_group.this.roles.broker.update.parallelism == 1 && trainyard_group.this.completion.when == "never"
    error_message = "Brokers must be a service and be updated one by one, and adding one must restart no other."
  }

  assert {
    condition     = trainyard_group.this.roles.broker.mounts == null && trainyard_group.controllers.roles.controller.mounts == null && trainyard_group.this.image == null
    error_message = "By default, nothing is mounted."
  }

  assert {
    condition     = length(trainyard_group.rebalancer) == 0 && length(trainyard_autoscaling_policy.this) == 0 && output.policy == null && output.rebalancer == null && output.names.rebalancer == null
    error_message = "By default, there is neither a rebalancer nor a policy."
  }

  assert {
    condition     = can(regex("^k[A-Za-z0-9_-]{20}A$", output.cluster_id)) && strcontains(trainyard_group.this.roles.broker.command[2], "--cluster-id ${output.cluster_id} ")
    error_message = "The cluster ID must have Kafka's format, and all members must be formatted with it."
  }
}

run "another_name_is_another_cluster" {
  variables {
    name = "events"
  }

  assert {
    condition     = output.cluster_id != run.defaults.cluster_id && output.names == { brokers = "events", controllers = "events-controllers", rebalancer = null }
    error_message = "A different group must have a different ID."
  }
}

run "single_broker" {
  variables {
    broker = { replicas = 1, data_dir = "/mnt/nvme/kafka" }
    java   = "/usr/lib/jvm/java-17/bin/java"
    libs   = "/srv/kafka/libs/"
    conf   = { "log.retention.hours" = "24", "offsets.topic.replication.factor" = "1" }
  }

  assert {
    condition = (
      strcontains(trainyard_group.this.roles.broker.command[2], "\ndefault.replication.factor=1\n") && strcontains(trainyard_group.this.roles.broker.command[2], "\nmin.insync.replicas=1\n")
      && strcontains(trainyard_group.this.roles.broker.command[2], "\nlog.retention.hours=24\n") && strcontains(trainyard_group.controllers.roles.controller.command[2], "\nlog.retention.hours=24\n")
    )
    error_message = "With one broker, there must be one replica, and all members must have the properties."
  }

  assert {
    condition = (
      strcontains(trainyard_group.this.roles.broker.command[2], "folder=/mnt/nvme/kafka/$TRAINYARD_MEMBER\n")
      && strcontains(trainyard_group.this.roles.broker.command[2], "exec /usr/lib/jvm/java-17/bin/java -Xms1024m")
      && strcontains(trainyard_group.this.roles.broker.command[2], "-cp '/srv/kafka/libs/*' kafka.Kafka server.properties")
    )
    error_message = "Data, Java and Kafka must be where the user put them."
  }
}
