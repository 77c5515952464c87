# The brokers follow a metric, with the rebalancer.
# Only for Terraform: OpenTofu mocks in another way.

mock_provider "trainyard" {}

variables {
  cluster       = { name = "lab" }
  secret_values = {} # an apply of a root module requires all of its ephemeral variables
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
    error_message = "The count must be left to the policy."
  }

  assert {
    condition     = output.bootstrap_servers == "127.0.0.1:9092"
    error_message = "Clients must get the brokers that exist whatever the policy does."
  }

  assert {
    condition = (
      trainyard_autoscaling_policy.this[0].metrics.cpu.source.agent.measure == "cpu_percent" && trainyard_autoscaling_policy.this[0].metrics.cpu.source.queue == null
      && trainyard_autoscaling_policy.this[0].metrics.cpu.algorithm.target == { value = 60, per = "mean" } && trainyard_autoscaling_policy.this[0].metrics.cpu.ready_after == "1m"
    )
    error_message = "The target must be a CPU usage of 60 %."
  }

  assert {
    condition = (
      trainyard_autoscaling_policy.this[0].hooks.before_removal.url == "http://127.0.0.1:9292/leaving" && trainyard_autoscaling_policy.this[0].hooks.after_addition.url == "http://127.0.0.1:9292/joined"
      && trainyard_autoscaling_policy.this[0].hooks.before_removal.timeout == "1h" && trainyard_autoscaling_policy.this[0].hooks.after_addition.timeout == "1h"
      && trainyard_autoscaling_policy.this[0].guards.at_least.http == { url = "http://127.0.0.1:9292/status", path = "replication_factor" }
    )
    error_message = "The rebalancer must be called before brokers are removed and after some are added, and report the minimum."
  }

  assert {
    condition     = trainyard_autoscaling_policy.this[0].scale_in.max_step == 1 && trainyard_autoscaling_policy.this[0].scale_out.max_step == 1 && trainyard_autoscaling_policy.this[0].scale_in.stabilisation_window == "30m" && trainyard_autoscaling_policy.this[0].scale_out.cooldown == "10m"
    error_message = "Brokers must be added and removed one at a time."
  }

  assert {
    condition = trainyard_group.rebalancer[0].roles.server.command == tolist([
      "rebalancer", "-bootstrap", "127.0.0.1:9092", "-listen", "{{ .Address }}", "-role", "broker", "-throttle-mib", "20",
    ])
    error_message = "The rebalancer must get the brokers' addresses and its throttle."
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
    error_message = "The number of brokers must follow the load of all brokers."
  }

  assert {
    condition     = strcontains(trainyard_group.this.roles.broker.command[2], "\ndefault.replication.factor=1\n")
    error_message = "There must be no more replicas than the minimum number of brokers."
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
    error_message = "The algorithm must be heat alone, as configured."
  }
}

run "learned" {
  variables {
    rebalancer = {}
    autoscale = {
      min  = 3
      max  = 6
      load = { url = "http://load:9393/status" }
      algorithm = {
        learned = {
          model = jsonencode({
            version  = 1, algorithm = "dqn", actions = ["up", "stay", "down"], hidden = [64, 64]
            features = ["load", "cpu", "p99", "lag_growth", "skew"], mean = [0, 0, 0, 0, 0], scale = [1, 1, 1, 1, 1]
            weights  = "${replace(format("%025272d", 0), "0", "A")}AAA=" # all 0
            trained  = { trace_sha256 = sha256(""), seed = 1, updates = 1 }
          })
          capacity         = 20000
          observes         = ["cpu", "p99", "lag_growth", "skew"]
          latency_bound_ms = 500
        }
      }
    }
  }

  override_resource {
    target = trainyard_group.rebalancer
    values = { members = { "kafka-rebalancer-server-0" = "127.0.0.1:9292" } }
  }

  assert {
    condition = (
      trainyard_autoscaling_policy.this[0].metrics.load.algorithm.learned.capacity == 20000 && trainyard_autoscaling_policy.this[0].metrics.load.algorithm.learned.per == "total"
      && trainyard_autoscaling_policy.this[0].metrics.load.algorithm.learned.latency_bound == 500
      && trainyard_autoscaling_policy.this[0].metrics.load.algorithm.learned.observes == tomap({ cpu = "cpu", p99 = "p99", lag_growth = "lag_growth", skew = "skew" })
    )
    error_message = "The model must get the load of all brokers."
  }

  assert {
    condition = (
      trainyard_autoscaling_policy.this[0].metrics.cpu.source.agent.measure == "cpu_percent"
      && trainyard_autoscaling_policy.this[0].metrics.p99.source.queue.http == { url = "http://load:9393/status", path = "p99_ms" }
      && trainyard_autoscaling_policy.this[0].metrics.lag_growth.source.queue.http == { url = "http://load:9393/status", path = "lag" }
      && trainyard_autoscaling_policy.this[0].metrics.skew.source.queue.http == { url = "http://127.0.0.1:9292/status", path = "skew" }
      && alltrue([for name, metric in trainyard_autoscaling_policy.this[0].metrics : metric.algorithm == null || name == "load"])
    )
    error_message = "What the model observes must be read from its source, without an algorithm of its own."
  }
}

run "learned_of_busy_brokers" {
  variables {
    broker     = { resources = { cpus = 1 } }
    rebalancer = {}
    autoscale = {
      min = 3
      max = 6
      algorithm = {
        learned = {
          model = jsonencode({
            version  = 1, algorithm = "dqn", actions = ["up", "stay", "down"], hidden = [64, 64]
            features = ["load", "cpu"], mean = [0, 0], scale = [1, 1]
            weights  = "${replace(format("%024248d", 0), "0", "A")}AAA=" # all 0
            trained  = { trace_sha256 = sha256(""), seed = 1, updates = 1 }
          })
          observes = ["cpu"]
        }
      }
    }
  }

  assert {
    condition     = trainyard_autoscaling_policy.this[0].metrics.cpu.algorithm.learned.observes == tomap({ cpu = "processors" }) && trainyard_autoscaling_policy.this[0].metrics.processors.source.agent.measure == "cpu_percent"
    error_message = "A model that also takes CPU usage as a feature needs a metric of it without an algorithm."
  }
}
