# Invalid configs and misspelt parameters are reported at plan time.

mock_provider "trainyard" {}

variables {
  cluster = { name = "lab" }
  seeds   = range(2)
}

run "config_that_is_none" {
  command = plan

  variables {
    config = 3
  }

  expect_failures = [var.config]
}

run "config_of_another_section" {
  command = plan

  variables {
    config = { markets = { customers = 20 } }
  }

  expect_failures = [trainyard_sweep.this]
}

run "config_without_its_section" {
  command = plan

  variables {
    config = { learning = 0.99 }
  }

  expect_failures = [trainyard_sweep.this]
}

run "config_of_a_misspelt_parameter" {
  command = plan

  variables {
    config = { learning = { gama = 0.99 } }
  }

  expect_failures = [trainyard_sweep.this]
}

run "gamma_above_one" {
  command = plan

  variables {
    config = { learning = { gamma = 1.5 } }
  }

  expect_failures = [trainyard_sweep.this]
}

run "customers_in_parts" {
  command = plan

  variables {
    config = { market = { customers = 2.5 } }
  }

  expect_failures = [trainyard_sweep.this]
}

run "price_in_words" {
  command = plan

  variables {
    config = { market = { max_price = "ten" } }
  }

  expect_failures = [trainyard_sweep.this]
}

run "no_rate" {
  command = plan

  variables {
    config = { learning = { learning_rate = 0 } }
  }

  expect_failures = [trainyard_sweep.this]
}

run "runs_that_are_none" {
  command = plan

  variables {
    runs = "dqn"
  }

  expect_failures = [var.runs]
}

run "run_that_is_none" {
  command = plan

  variables {
    runs = { dqn = 3 }
  }

  expect_failures = [var.runs]
}

run "agent_of_others" {
  command = plan

  variables {
    runs = { ppo = { environment = { agent = "ppo" } } }
  }

  expect_failures = [trainyard_sweep.this]
}

run "agent_in_numbers" {
  command = plan

  variables {
    runs = { a = { environment = { agent = 1 } } }
  }

  expect_failures = [trainyard_sweep.this]
}

run "run_without_episodes" {
  command = plan

  variables {
    runs = { a = { environment = { episodes = 0 } } }
  }

  expect_failures = [trainyard_sweep.this]
}

run "replay_that_starts_after_its_end" {
  command = plan

  variables {
    runs = { a = { learning = { replay_size = 5000 } } }
  }

  expect_failures = [trainyard_sweep.this]
}

run "batch_of_more_than_there_is" {
  command = plan

  variables {
    config = { learning = { batch_size = 20000 } }
  }

  expect_failures = [trainyard_sweep.this]
}

run "epsilon_that_rises" {
  command = plan

  variables {
    config = { learning = { epsilon_start = 0.05 } }
  }

  expect_failures = [trainyard_sweep.this]
}

run "key_in_capitals" {
  command = plan

  variables {
    runs = { DQN = {} }
  }

  expect_failures = [trainyard_sweep.this]
}

run "key_too_long" {
  command = plan

  variables {
    runs = { a23456789-123456789-123456789-123456789-123456789 = {} }
  }

  expect_failures = [trainyard_sweep.this]
}

run "seed_in_parts" {
  command = plan

  variables {
    seeds = [0.5]
  }

  expect_failures = [var.seeds]
}

run "seed_twice" {
  command = plan

  variables {
    seeds = [1, 1]
  }

  expect_failures = [var.seeds]
}

run "no_runs" {
  command = plan

  variables {
    seeds = []
  }

  expect_failures = [var.seeds]
}

run "seeds_and_a_seed" {
  command = plan

  variables {
    seeds  = [1]
    config = { environment = { seed = 2 } }
  }

  expect_failures = [var.seeds]
}

run "seeds_and_a_seed_of_a_run" {
  command = plan

  variables {
    seeds = [1]
    runs  = { a = { environment = { seed = 2 } } }
  }

  expect_failures = [var.seeds]
}

run "seeds_without_a_place" {
  command = plan

  variables {
    command = ["train"]
    config  = { environment = "CartPole-v1" }
  }

  expect_failures = [var.seeds]
}

run "seeds_without_a_place_in_a_run" {
  command = plan

  variables {
    command = ["train"]
    config  = { environment = { name = "CartPole-v1" } }
    runs    = { a = { environment = null } }
  }

  expect_failures = [var.seeds]
}

run "sections_that_are_no_objects" {
  command = plan

  variables {
    command = ["train"]
    seeds   = []
    config  = { opt = { name = "adam", rate = 0.1 }, env = "CartPole-v1", steps = [1], log = null }
    runs = {
      as-config = {}
      none      = { opt = null, env = null, steps = null, log = null }
      others    = { opt = "sgd", env = { name = "Acrobot-v1" }, steps = [2], log = {} }
      parts     = { opt = { rate = null }, env = "Acrobot-v1" }
    }
  }

  assert {
    condition = { for key, config in output.configs : key => jsondecode(config) } == {
      as-config = { opt = { name = "adam", rate = 0.1 }, env = "CartPole-v1", steps = [1], log = null }
      none      = { opt = null, env = null, steps = null, log = null }
      others    = { opt = "sgd", env = { name = "Acrobot-v1" }, steps = [2], log = {} }
      parts     = { opt = { name = "adam", rate = null }, env = "Acrobot-v1", steps = [1], log = null }
    }
    error_message = "A run's config must override config, also with null, and by parameter only if both are objects."
  }
}
