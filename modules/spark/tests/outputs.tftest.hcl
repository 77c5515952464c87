# The outputs describe what runs.

mock_provider "trainyard" {
  mock_resource "trainyard_files" {
    defaults = { path = "/srv/files" }
  }
}

variables {
  secret_values = {} # an apply of a root module requires all of its ephemeral variables
}

run "containers_on_bare_hosts" {
  variables {
    cluster = { name = "lab", engine = "systemd", endpoint = "ssh://ops@gpu1" }
    image   = "spark:4"
    worker  = { gpus = { pool = "v100" }, mounts = [{ source = "/mnt/nas", target = "/mnt/nas" }] }
    mounts  = [{ source = "/srv/events", target = "/srv/events" }]
    history = { dir = "/srv/events" }
  }

  override_resource {
    target = trainyard_group.this
    values = { id = "lab/spark", members = { spark-master-0 = "192.0.2.1:7077" }, placements = { spark-master-0 = "gpu1" } }
  }

  override_resource {
    target = trainyard_group.history
    values = { members = { spark-history-web-0 = "192.0.2.1:18080" } }
  }

  assert {
    condition     = trainyard_group.this.roles.worker.mounts[2].source == "/srv/files" && trainyard_group.this.roles.worker.mounts[2].read_only && length(trainyard_group.this.roles.master.mounts) == 1
    error_message = "Workers' containers must see the script."
  }

  assert {
    condition     = output.master == "spark://192.0.2.1:7077" && output.web == "http://192.0.2.1:8080"
    error_message = "On bare hosts, the master must be at its host's address."
  }

  assert {
    condition     = output.id == "lab/spark" && output.placements["spark-master-0"] == "gpu1" && output.history == "http://192.0.2.1:18080" && output.runtime.image == "spark:4"
    error_message = "The outputs must say which members run where."
  }
}
