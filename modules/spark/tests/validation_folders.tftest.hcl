# Folders in which containers lose what they write, or don't see what others write, are reported at plan time.

mock_provider "trainyard" {
  mock_resource "trainyard_files" {
    defaults = { path = "/srv/files" }
  }
}

variables {
  cluster = { name = "lab", engine = "swarm" }
  image   = "spark:4"
}

run "state_that_the_master_loses" {
  command = plan

  variables {
    worker = { mounts = [{ source = "/srv", target = "/srv" }] }
    master = { recovery_dir = "/srv/recovery" }
  }

  expect_failures = [trainyard_group.this]
}

run "events_that_the_history_server_does_not_see" {
  command = plan

  variables {
    mounts  = [{ source = "/srv/event", target = "/srv/event" }]
    master  = { mounts = [{ source = "/srv", target = "/srv" }] }
    history = { dir = "/srv/events" }
  }

  expect_failures = [trainyard_group.this]
}

run "events_that_drivers_write_through_their_own_mounts" {
  command = plan

  variables {
    mounts  = [{ source = "/srv", target = "/srv", read_only = true }]
    history = { dir = "/srv/events" }
  }
}

run "state_that_is_read_only" {
  command = plan

  variables {
    mounts = [{ source = "/srv", target = "/srv", read_only = true }]
    master = { recovery_dir = "/srv/state" }
  }

  expect_failures = [trainyard_group.this]
}

run "shuffled_data_that_workers_lose" {
  command = plan

  variables {
    master      = { mounts = [{ source = "/srv", target = "/srv" }] }
    shuffle_dir = "/srv/shuffle"
  }

  expect_failures = [trainyard_group.this]
}

run "shuffled_data_in_memory" {
  command = plan

  variables {
    mounts      = [{ type = "tmpfs", target = "/srv/shuffle/" }, { source = "/srv", target = "/srv" }]
    shuffle_dir = "/srv/shuffle/spark"
  }

  expect_failures = [trainyard_group.this]
}

run "shuffled_data_that_containers_on_bare_hosts_lose" {
  command = plan

  variables {
    cluster     = { name = "lab", engine = "systemd" }
    image       = null
    worker      = { image = "spark:4" }
    shuffle_dir = "/srv/shuffle"
  }

  expect_failures = [trainyard_group.this]
}

run "folders_of_members_with_a_mount" {
  command = plan

  variables {
    mounts      = [{ type = "volume", source = "events", target = "/srv/events/" }, { type = "tmpfs", target = "/srv" }]
    master      = { recovery_dir = "/srv/recovery", mounts = [{ source = "/srv/recovery", target = "/srv/recovery" }] }
    worker      = { mounts = [{ source = "/mnt", target = "/mnt" }] }
    history     = { dir = "/srv/events" }
    shuffle_dir = "/mnt/nas/shuffle"
  }
}

run "folders_of_programs" {
  command = plan

  variables {
    cluster     = { name = "lab", engine = "systemd" }
    image       = null
    worker      = { image = "spark:4", mounts = [{ source = "/mnt", target = "/mnt" }] }
    master      = { recovery_dir = "/srv/recovery" }
    history     = { dir = "/srv/events" }
    shuffle_dir = "/mnt/nas/shuffle"
  }
}

run "folders_of_processes" {
  command = plan

  variables {
    cluster     = { name = "lab" }
    master      = { recovery_dir = "/srv/recovery" }
    history     = { dir = "/srv/events" }
    shuffle_dir = "/srv/shuffle"
  }
}
