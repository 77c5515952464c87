mock_provider "trainyard" {
  mock_resource "trainyard_files" {
    defaults = { path = "/srv/files" }
  }
}

variables {
  cluster = { name = "lab" }
}

run "defaults" {
  assert {
    condition     = trainyard_group.training.command == tolist(["python3", "/srv/files/train.py"]) && trainyard_group.training.env.EPOCHS == "20"
    error_message = "The program must run from its files, with the defaults."
  }
}

run "no_epochs" {
  command = plan

  variables {
    epochs = 0
  }

  expect_failures = [var.epochs]
}

run "no_files_on_a_swarm" {
  command = plan

  variables {
    cluster = { name = "lab", engine = "swarm" }
  }

  expect_failures = [var.cluster]
}
