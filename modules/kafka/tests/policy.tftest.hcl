# The brokers follow a metric, with the rebalancer.

mock_provider "trainyard" {}

variables {
  cluster = { name = "lab" }
}

run "policy" {
  variables {
    broker     = { resources = { cpus = 1 } }
    rebalancer = { throttle_mib = 20, timeout = "1h" }
    autoscale  = { min = 3, max = 6 }
  }

  override_resource {
    target = trainyard_group.rebalancer
    values = { members = { "kafka-rebalancer-server-0" = "127.0.0.1:9292" } }
  }

  override_resource {
    target = trainyard_group.this
    values = {
      members = {
        "kafka-broker-0" = "127.0.0.1:9092", "kafka-broker-1" = "127.0.0.1:9093", "kafka-broker-2" = "127.0.0.1:9094", "kafka-broker-3" = "127.0.0.1:9095"
      }
    }
  }

  assert {
    condition     = trainyard_group.this.roles.broker.replicas == null && trainyard_autoscaling_policy.this[0].role == "broker" && trainyard_autoscaling_policy.this[0].min == 3 && trainyard_autoscaling_policy.this[0].max == 6
    error_message = "The count is the policy's."
  }

  assert {
    condition     = output.bootstrap_servers == "127.0.0.1:9092"
    error_message = "Clients are told of those that stay, whatever the policy does."
  }

  assert {
    condition = (
      trainyard_autoscaling_policy.this[0].metrics.cpu.source.agent.measure == "cpu_percent" && trainyard_autoscaling_policy.this[0].metrics.cpu.source.queue == null
      && trainyard_autoscaling_policy.this[0].metrics.cpu.algorithm.target == { value = 60, per = "mean" } && trainyard_autoscaling_policy.this[0].metrics.cpu.ready_after == "1m"
    )
    error_message = "Brokers are kept 60 % busy."
  }

  assert {
    condition = (
      trainyard_autoscaling_policy.this[0].hooks.before_removal.url == "http://127.0.0.1:9292/leaving" && trainyard_autoscaling_policy.this[0].hooks.after_addition.url == "http://127.0.0.1:9292/joined"
      && trainyard_autoscaling_policy.this[0].hooks.before_removal.timeout == "1h" && trainyard_autoscaling_policy.this[0].hooks.after_addition.timeout == "1h"
      && trainyard_autoscaling_policy.this[0].guards.at_least.http == { url = "http://127.0.0.1:9292/status", path = "replication_factor" }
    )
    error_message = "The rebalancer is told before brokers go and after they came, and how many there have to be it tells."
  }

  assert {
    condition     = trainyard_autoscaling_policy.this[0].scale_in.max_step == 1 && trainyard_autoscaling_policy.this[0].scale_out.max_step == 1 && trainyard_autoscaling_policy.this[0].scale_in.stabilisation_window == "30m" && trainyard_autoscaling_policy.this[0].scale_out.cooldown == "10m"
    error_message = "One broker comes or goes at a time."
  }

  assert {
    condition = trainyard_group.rebalancer[0].roles.server.command == tolist([
      "rebalancer", "-bootstrap", "127.0.0.1:9092", "-listen", "{{ .Address }}", "-role", "broker", "-throttle-mib", "20",
    ])
    error_message = "The rebalancer has to know the brokers and its bound."
  }
}

run "load" {
  variables {
    rebalancer = {}
    autoscale = {
      min       = 1
      max       = 6
      load      = { url = "http://127.0.0.1:9393/status" }
      algorithm = { risk = { percent = 1, capacity = 5000 } }
    }
  }

  assert {
    condition = (
      trainyard_autoscaling_policy.this[0].metrics.load.source.queue.http == { url = "http://127.0.0.1:9393/status", path = "load" } && trainyard_autoscaling_policy.this[0].metrics.load.source.agent == null
      && trainyard_autoscaling_policy.this[0].metrics.load.algorithm.risk == { percent = 1, capacity = 5000, per = "total" } && trainyard_autoscaling_policy.this[0].metrics.load.algorithm.target == null
    )
    error_message = "Brokers follow what all of them are asked for."
  }

  assert {
    condition     = strcontains(trainyard_group.this.roles.broker.command[2], "\ndefault.replication.factor=1\n")
    error_message = "There are no more copies than brokers that stay."
  }
}

run "heat" {
  variables {
    broker     = { resources = { cpus = 1 } }
    rebalancer = {}
    autoscale  = { min = 3, max = 6, algorithm = { heat = { lower = 20, upper = 60, target = 50 } } }
  }

  assert {
    condition     = trainyard_autoscaling_policy.this[0].metrics.cpu.algorithm.heat == { lower = 20, upper = 60, target = 50, recurrence = 3 } && trainyard_autoscaling_policy.this[0].metrics.cpu.algorithm.target == null
    error_message = "The rule is the one that was asked for, alone."
  }
}
