# One block on all engines: how members get the program, and their network.
# Only for Terraform: OpenTofu mocks in another way.

mock_provider "trainyard" {
  mock_resource "trainyard_files" {
    defaults = { path = "/srv/files" }
  }
}

variables {
  secret_values = {} # an apply of a root module requires all of its ephemeral variables

  image       = "tensorflow/tensorflow:2.21.0"
  log_dir     = "/logs"
  mounts      = [{ source = "/logs", target = "/logs" }]
  tensorboard = { placement = { hosts = ["gpu1"] } }
}

run "swarm" {
  variables {
    cluster     = { name = "lab", engine = "swarm" }
    worker      = { gpus = { pool = "v100" }, env = { NCCL_DEBUG = "INFO" }, mounts = [{ type = "tmpfs", target = "/scratch" }, { type = "volume", source = "mnist", target = "/data", driver = { name = "local", options = { type = "nfs" } } }] }
    tensorboard = { published_port = 16006, placement = { hosts = ["gpu1"] } }
  }

  assert {
    condition     = length(trainyard_files.this) == 0 && output.path == null && trainyard_group.this.working_dir == null
    error_message = "Containers on a Swarm don't get files."
  }

  assert {
    condition = (
      trainyard_group.this.image == "tensorflow/tensorflow:2.21.0"
      && trainyard_group.this.command == tolist(["python3", "/srv/multiworker/train.py"]) && trainyard_group.this.container.init
      && { for name, config in trainyard_group.this.container.configs : config.target => config.content } == {
        for name in fileset("train", "*.py") : "/srv/multiworker/${name}" => file("train/${name}")
      }
    )
    error_message = "The module's own program must come as configs, with all of its files."
  }

  assert {
    condition = (
      trainyard_group.this.roles.worker.mounts[*].target == tolist(["/logs", "/scratch", "/data"]) && trainyard_group.this.roles.worker.mounts[2].driver.options.type == "nfs" && trainyard_group.this.roles.worker.gpus.pool == "v100"
      && trainyard_group.this.roles.worker.env.NCCL_DEBUG == "INFO"
    )
    error_message = "Workers must have the module's mounts, their own, and GPUs."
  }

  assert {
    condition = (
      trainyard_group.tensorboard[0].roles.web.image == "tensorflow/tensorflow:2.21.0"
      && trainyard_group.tensorboard[0].roles.web.mounts[0].source == "/logs"
      && trainyard_group.tensorboard[0].roles.web.container.ports.web.published == 16006 && trainyard_group.tensorboard[0].roles.web.args[3] == "0.0.0.0"
      && trainyard_group.tensorboard[0].roles.web.placement.hosts == tolist(["gpu1"])
      && trainyard_group.tensorboard[0].completion.when == "never"
    )
    error_message = "TensorBoard must see the folder, and be published at the configured port."
  }
}

run "network" {
  variables {
    cluster = {
      name  = "lab", engine = "swarm", endpoint = "ssh://ops@gpu1"
      hosts = { gpu1 = { address = "ssh://ops@gpu1", role = "manager", labels = { gpu = "v100" } }, gpu2 = { address = "ssh://ops@gpu2", socket = "/run/docker.sock", capacity = { cpus = 4 } } }
    }
    name    = "second"
    network = { subnet = "10.10.0.0/24" }
  }

  assert {
    condition = (
      trainyard_cluster.own[0].name == "lab-second" && trainyard_cluster.own[0].engine == "swarm" && trainyard_cluster.own[0].endpoint == "ssh://ops@gpu1"
      && trainyard_cluster.own[0].network.subnet == "10.10.0.0/24"
    )
    error_message = "The network must belong to a separate cluster in the same Swarm."
  }

  assert {
    condition = (
      join(" ", keys(trainyard_cluster.own[0].hosts)) == "gpu1 gpu2" && trainyard_cluster.own[0].hosts["gpu1"].address == "ssh://ops@gpu1" && trainyard_cluster.own[0].hosts["gpu1"].labels.gpu == "v100"
      && trainyard_cluster.own[0].hosts["gpu1"].role == null && trainyard_cluster.own[0].hosts["gpu2"].socket == "/run/docker.sock" && trainyard_cluster.own[0].hosts["gpu2"].capacity.cpus == 4
    )
    error_message = "The separate cluster must have the same hosts, and leave their roles alone."
  }

  assert {
    condition     = trainyard_group.this.cluster.name == "lab-second" && trainyard_group.tensorboard[0].cluster.name == "lab-second" && output.cluster.name == "lab-second"
    error_message = "All members must be in it."
  }
}

run "bare_hosts" {
  variables {
    cluster = { name = "lab", engine = "systemd", endpoint = "ssh://ops@gpu1" }
    image   = null
  }

  assert {
    condition     = trainyard_group.this.image == null && trainyard_group.tensorboard[0].roles.web.image == null && trainyard_group.this.container == null
    error_message = "Without an image, members on bare hosts must be plain processes."
  }

  assert {
    condition     = trainyard_group.this.command == tolist(["python3", "/srv/files/train.py"]) && trainyard_group.this.working_dir == "/srv/files" && trainyard_group.this.roles.worker.mounts[*].target == tolist(["/logs"])
    error_message = "The module's own program must run from its files."
  }
}

run "containers_on_bare_hosts" {
  variables {
    cluster = { name = "lab", engine = "systemd", endpoint = "ssh://ops@gpu1" }
  }

  assert {
    condition     = trainyard_group.this.image == "tensorflow/tensorflow:2.21.0" && trainyard_group.tensorboard[0].roles.web.image == "tensorflow/tensorflow:2.21.0"
    error_message = "With an image, members on bare hosts must be containers."
  }

  assert {
    condition     = trainyard_group.this.roles.worker.mounts[1].source == "/srv/files" && trainyard_group.this.roles.worker.mounts[1].target == "/srv/files" && trainyard_group.this.roles.worker.mounts[1].read_only
    error_message = "Containers must see the files."
  }
}

run "files_of_processes" {
  variables {
    cluster = { name = "lab", engine = "process" }
    files   = "./train"
    command = ["python3", "train.py"]
    args    = ["--workers={{ addresses \"worker\" }}"]
  }

  assert {
    condition     = trainyard_files.this[0].source == "./train" && trainyard_group.this.working_dir == "/srv/files" && trainyard_group.this.command[1] == "train.py" && length(trainyard_group.this.args) == 1
    error_message = "The command must run in the folder of the files."
  }
}

run "program_of_an_image" {
  variables {
    cluster = { name = "lab", engine = "swarm" }
    image   = "trainer:1.2"
    command = ["/trainer"]
    worker  = { gpus = { pool = "v100", count = 2 } }
  }

  assert {
    condition     = trainyard_group.this.command == tolist(["/trainer"]) && trainyard_group.this.container.configs == null && trainyard_group.this.container.init && trainyard_group.this.roles.worker.exit_codes.final == tolist(["126-127"]) && trainyard_group.this.roles.worker.gpus.count == 2
    error_message = "The image's program must run as configured."
  }
}

run "secrets" {
  command = plan

  variables {
    cluster       = { name = "lab", engine = "swarm" }
    image         = "tensorflow/tensorflow:2.21.0"
    secrets       = { token = { version = "2" }, key = { version = "1", target = "/etc/key", mode = "0440" } }
    secret_values = { token = "hunter2", key = "swordfish" }
  }

  assert {
    condition = (
      join(" ", keys(trainyard_group.this.container.secrets)) == "key token" && trainyard_group.this.container.secrets["token"].version == "2" && trainyard_group.this.container.secrets["token"].target == null
      && trainyard_group.this.container.secrets["key"].target == "/etc/key" && trainyard_group.this.container.secrets["key"].mode == "0440" && length(trainyard_group.this.container.configs) > 0
    )
    error_message = "Members must get the secrets beside the module's own program."
  }

  assert {
    condition     = alltrue([for secret in values(trainyard_group.this.container.secrets) : secret.value == null])
    error_message = "The values must not be in the plan."
  }
}

run "secrets_of_programs" {
  command = plan

  variables {
    cluster       = { name = "lab", engine = "systemd", endpoint = "ssh://ops@gpu1" }
    image         = null
    secrets       = { token = { version = "1" } }
    secret_values = { token = "hunter2" }
  }

  assert {
    condition     = trainyard_group.this.container.configs == null && trainyard_group.this.container.secrets["token"].version == "1"
    error_message = "Members on bare hosts must get the secrets, too."
  }
}
