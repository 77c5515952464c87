# Each run keeps who added it, whoever plans later.

mock_provider "trainyard" {
  mock_resource "trainyard_files" {
    defaults = { path = "/srv/files" }
  }
}

variables {
  cluster = { name = "lab" }
}

run "of_nobody" {
  variables {
    name = "unclaimed"
    runs = { first = {} }
  }

  assert {
    condition     = length(trainyard_sweep.this.runs.first) == 0
    error_message = "The run must be nobody's."
  }
}

run "added_by_ada" {
  variables {
    name       = "unclaimed"
    started_by = "ada"
    runs       = { first = {}, second = {} }
  }

  assert {
    condition     = length(trainyard_sweep.this.runs.first) == 0 && trainyard_sweep.this.runs.second.STARTED_BY == "ada"
    error_message = "The run that was there must stay nobody's, and the other one be ada's."
  }
}

run "without_ada" {
  variables {
    name = "unclaimed"
    runs = { first = {}, second = {} }
  }

  assert {
    condition     = length(trainyard_sweep.this.runs.first) == 0 && trainyard_sweep.this.runs.second.STARTED_BY == "ada"
    error_message = "Without started_by, both runs must stay as they are."
  }
}

# Its runs have other keys, so that those below are new.
run "others" {
  variables {
    name  = "unclaimed"
    seeds = [0]
  }
}

run "of_ada" {
  variables {
    started_by = "ada"
    runs       = { first = {} }
  }

  assert {
    condition     = trainyard_sweep.this.runs.first.STARTED_BY == "ada"
    error_message = "The run must be ada's."
  }
}

run "of_ada_and_bob" {
  variables {
    started_by = "bob"
    runs       = { first = {}, second = {} }
  }

  assert {
    condition     = trainyard_sweep.this.runs.first.STARTED_BY == "ada" && trainyard_sweep.this.runs.second.STARTED_BY == "bob"
    error_message = "The run that was there must stay ada's, and the other one be bob's."
  }
}

run "planned_by_carol" {
  command = plan

  variables {
    started_by = "carol"
    runs       = { first = { environment = { episodes = 10 } }, second = {} }
  }

  assert {
    condition     = trainyard_sweep.this.runs.first.STARTED_BY == "ada" && trainyard_sweep.this.runs.second.STARTED_BY == "bob"
    error_message = "Both runs must stay with who added them."
  }
}
