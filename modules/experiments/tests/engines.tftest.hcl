# How runs get programs, GPUs and folders for results, by engine.

mock_provider "trainyard" {
  mock_resource "trainyard_files" {
    defaults = { path = "/srv/files" }
  }
}

variables {
  seeds = range(2)
}

run "swarm" {
  variables {
    cluster     = { name = "lab", engine = "swarm" }
    image       = "rl:1"
    mounts      = [{ type = "volume", source = "results", target = "/srv/results", driver = { name = "local", options = { type = "nfs" } } }]
    results     = { path = "/srv/results" }
    gpus        = { pool = "a40" }
    admission   = { settle = "5s" }
    progress    = {}
    on_finish   = { url = "https://hooks.example.com" }
    tensorboard = { image = "tensorboard:1", published_port = 16006, placement = { hosts = ["gpu1"] } }
    started_by  = "ada"
  }

  assert {
    condition     = length(trainyard_files.this) == 0 && output.path == null && trainyard_sweep.this.working_dir == null && trainyard_sweep.this.command == tolist(["python3", "/srv/experiments/train.py"])
    error_message = "Containers on a Swarm don't get files."
  }

  assert {
    condition = { for name, config in trainyard_sweep.this.container.configs : config.target => config.content } == {
      for file in ["agents.py", "events.py", "market.py", "train.py"] : "/srv/experiments/${file}" => file("train/${file}")
    }
    error_message = "The module's own program must come as configs."
  }

  assert {
    condition = (
      trainyard_sweep.this.gpus.pool == "a40" && trainyard_sweep.this.gpus.memory_mib == 1199
      && trainyard_sweep.this.admission.free_gpu_memory && !trainyard_sweep.this.admission.free_memory
      && trainyard_sweep.this.admission.reserve_percent == 3 && trainyard_sweep.this.admission.settle == "5s"
      && trainyard_sweep.this.progress.pattern == "\"episode\": ?(?P<step>[0-9]+)"
    )
    error_message = "A run with a GPU must wait for free GPU memory, and the number of runs must follow the throughput."
  }

  assert {
    condition     = trainyard_sweep.this.results.path == "/srv/results" && trainyard_sweep.this.mounts[0].source == "results" && trainyard_sweep.this.mounts[0].driver.options.type == "nfs" && trainyard_sweep.this.on_finish.url == "https://hooks.example.com" && alltrue([for run in trainyard_sweep.this.runs : run.STARTED_BY == "ada"])
    error_message = "Results, hook and started_by must be as configured."
  }

  assert {
    condition = (
      trainyard_group.tensorboard[0].roles.web.image == "tensorboard:1" && trainyard_group.tensorboard[0].roles.web.mounts[0].source == "results"
      && trainyard_group.tensorboard[0].roles.web.args[1] == "/srv/results/experiments"
      && trainyard_group.tensorboard[0].roles.web.container.ports.web.published == 16006
      && trainyard_group.tensorboard[0].roles.web.container.ports.web.target == 6006
      && trainyard_group.tensorboard[0].roles.web.args[3] == "0.0.0.0"
      && trainyard_group.tensorboard[0].roles.web.placement.hosts == tolist(["gpu1"])
      && trainyard_group.tensorboard[0].completion.when == "never"
    )
    error_message = "TensorBoard must see the folder of all results, and be published at the configured port."
  }
}

run "gpus_by_default" {
  command = plan

  variables {
    cluster = { name = "lab" }
    gpus    = { pool = "a40" }
  }

  assert {
    condition = (
      trainyard_sweep.this.admission.free_gpu_memory && !trainyard_sweep.this.admission.free_memory
      && trainyard_sweep.this.admission.reserve_percent == 3 && trainyard_sweep.this.admission.settle == "20s"
    )
    error_message = "A run must wait for free GPU memory with a reserve, and until the previous one has allocated its own."
  }
}

run "volumes_of_a_swarm" {
  variables {
    cluster = { name = "lab", engine = "swarm" }
    image   = "trainer:1.2"
    command = ["/trainer"]
    args    = ["--seed={{ .Role }}"]
    config  = { anything = [1, "two"] }
  }

  assert {
    condition = (
      trainyard_sweep.this.results.path == "/results" && trainyard_sweep.this.container == null && trainyard_sweep.this.objective == null
      && trainyard_sweep.this.command == tolist(["/trainer"]) && trainyard_sweep.this.args == tolist(["--seed={{ .Role }}"])
      && output.configs["seed-1"] == "{\"anything\":[1,\"two\"],\"environment\":{\"seed\":1}}"
    )
    error_message = "A program in an image must get its config unchanged, with its seed, and a volume for its results."
  }
}

run "files_of_processes" {
  variables {
    cluster   = { name = "lab", engine = "process" }
    files     = "./train"
    command   = ["python3", "train.py"]
    env       = { OPENBLAS_NUM_THREADS = "2" }
    resources = { memory_mib = 100 }
    admission = { free_memory = true }
  }

  assert {
    condition     = trainyard_files.this[0].source == "./train" && trainyard_sweep.this.working_dir == "/srv/files" && trainyard_sweep.this.env.OPENBLAS_NUM_THREADS == "2"
    error_message = "The command must run in the folder of the files, and env must override the module's settings."
  }

  assert {
    condition     = trainyard_sweep.this.admission.free_memory && !trainyard_sweep.this.admission.free_gpu_memory && trainyard_sweep.this.mounts == null
    error_message = "Without GPUs, none is waited for."
  }
}

run "containers_on_bare_hosts" {
  variables {
    cluster = { name = "lab", engine = "systemd", endpoint = "ssh://ops@gpu1" }
    image   = "rl:1"
    mounts  = [{ source = "/mnt/nas", target = "/mnt/nas" }]
  }

  assert {
    condition     = trainyard_sweep.this.mounts[1].source == "/srv/files" && trainyard_sweep.this.mounts[1].target == "/srv/files" && trainyard_sweep.this.mounts[1].read_only
    error_message = "Containers must see the program."
  }
}
