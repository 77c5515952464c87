# A TensorBoard that is a container must see the results of all runs: the plan says if it can't.

mock_provider "trainyard" {
  mock_resource "trainyard_files" {
    defaults = { path = "/srv/files" }
  }
}

variables {
  cluster     = { name = "lab", engine = "swarm" }
  image       = "rl:1"
  seeds       = range(2)
  results     = { path = "/srv/results" }
  tensorboard = {}
}

run "results_in_volumes_of_their_own" {
  command = plan

  variables {
    mounts = [{ source = "/srv/result", target = "/srv/result" }]
  }

  expect_failures = [trainyard_group.tensorboard]
}

run "results_in_memory" {
  command = plan

  variables {
    mounts = [{ type = "tmpfs", target = "/srv/results/" }, { source = "/srv", target = "/srv" }]
  }

  expect_failures = [trainyard_group.tensorboard]
}

run "results_of_your_own_program" {
  command = plan

  variables {
    command = ["/trainer"]
  }

  expect_failures = [trainyard_group.tensorboard]
}

run "results_of_containers_on_bare_hosts" {
  command = plan

  variables {
    cluster = { name = "lab", engine = "systemd" }
  }

  expect_failures = [trainyard_group.tensorboard]
}

run "tensorboard_in_a_container_on_a_bare_host" {
  command = plan

  variables {
    cluster     = { name = "lab", engine = "systemd" }
    image       = null
    tensorboard = { image = "tensorboard:1" }
  }

  expect_failures = [trainyard_group.tensorboard]
}

run "results_in_a_mount" {
  command = plan

  variables {
    mounts = [{ type = "volume", source = "results", target = "/srv/results/" }, { type = "tmpfs", target = "/srv" }]
  }
}

run "programs_on_bare_hosts" {
  command = plan

  variables {
    cluster = { name = "lab", engine = "systemd" }
    image   = null
  }
}

run "processes" {
  command = plan

  variables {
    cluster = { name = "lab" }
  }
}
