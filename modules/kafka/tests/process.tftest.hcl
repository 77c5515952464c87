# Real members, as processes on this machine. A shell takes the place of Java and of the rebalancer, and fails if it
# lacks what they need.

provider "trainyard" {}

variables {
  secret_values = {} # an apply of a root module requires all of its ephemeral variables
}

run "cluster" {
  module {
    source = "./tests/cluster"
  }
}

run "runs" {
  variables {
    cluster    = run.cluster.cluster
    java       = "${run.cluster.bin}/java"
    cluster_id = "kafka-test-_123456789w"
    conf       = { "sasl.jaas.config" = "a=\"b $c\" \\\\d;" }
    controller = { replicas = 3, port = 17192, heap_mib = 256 }
    broker     = { replicas = 4, port = 17092, heap_mib = 256, conf = { "broker.rack" = "{{ .Host }}" } }
    rebalancer = { program = "rebalancer", files = run.cluster.bin, port = 17292, throttle_mib = 5 }
  }

  assert {
    condition     = output.bootstrap_servers == "127.0.0.1:17092,127.0.0.1:17093,127.0.0.1:17094,127.0.0.1:17095"
    error_message = "Clients must get the addresses of all brokers."
  }

  assert {
    condition     = output.controllers == "127.0.0.1:17192,127.0.0.1:17193,127.0.0.1:17194" && output.rebalancer == "http://127.0.0.1:17292"
    error_message = "Controllers and rebalancer must listen at the configured ports."
  }

  assert {
    condition     = output.members["kafka-broker-3"] == "127.0.0.1:17095" && output.placements["kafka-controllers-controller-2"] == "local" && length(output.members) == 7
    error_message = "There must be three controllers and four brokers."
  }
}

# The data exists, so nothing is formatted again. Then it is removed.
run "starts_anew" {
  variables {
    cluster    = run.cluster.cluster
    java       = "${run.cluster.bin}/java"
    cluster_id = "kafka-test-_123456789w"
    conf       = { "sasl.jaas.config" = "a=\"b $c\" \\\\d;" }
    controller = { replicas = 3, port = 17192, heap_mib = 256 }
    broker     = { replicas = 4, port = 17092, heap_mib = 256, update_delay = "0s", conf = { "broker.rack" = "{{ .Host }}" } }
    rebalancer = { program = "rebalancer", files = run.cluster.bin, port = 17292, throttle_mib = 5 }
    env        = { FORGET = "yes" }
  }

  assert {
    condition     = length(output.members) == 7
    error_message = "All members must run again."
  }
}
