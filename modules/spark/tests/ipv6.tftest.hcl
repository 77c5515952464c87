# On hosts with IPv6 addresses, URLs have them in brackets.

mock_provider "trainyard" {}

variables {
  secret_values = {} # an apply of a root module requires all of its ephemeral variables
}

run "bare_hosts" {
  variables {
    cluster   = { name = "lab", engine = "systemd", endpoint = "ssh://ops@[fd00::4]" }
    autoscale = { max = 4 }
  }

  override_resource {
    target = trainyard_group.this
    values = { members = { spark-master-0 = "[fd00::4]:7077" } }
  }

  assert {
    condition     = output.master == "spark://[fd00::4]:7077" && output.web == "http://[fd00::4]:8080"
    error_message = "The outputs must say where the master is."
  }

  assert {
    condition = (
      trainyard_autoscaling_policy.this[0].guards.busy.http.url == "http://[fd00::4]:8080/json/"
      && trainyard_autoscaling_policy.this[0].metrics.applications.source.queue.http.url == "http://[fd00::4]:8080/json/"
    )
    error_message = "The policy must find the master."
  }
}
