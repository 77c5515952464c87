# The defaults: the values in the paper, and the module's own program.

mock_provider "trainyard" {
  mock_resource "trainyard_files" {
    defaults = { path = "/srv/files" }
  }
}

variables {
  cluster = { name = "lab" }
}

run "defaults" {
  variables {
    seeds = range(50)
  }

  assert {
    condition     = trainyard_sweep.this.name == "experiments" && length(trainyard_sweep.this.runs) == 50 && contains(keys(trainyard_sweep.this.runs), "seed-49")
    error_message = "Each seed is a run."
  }

  assert {
    condition = jsondecode(trainyard_sweep.this.config["seed-7"]) == {
      market = {
        max_storage = 100, episode_length = 50, max_price = 10, max_quality = 50, customers = 20, production_price = 3, storage_cost = 0.1
      }
      learning = {
        gamma         = 0.99, batch_size = 32, replay_size = 100000, replay_start = 10000, learning_rate = 0.1, target_frames = 1000,
        epsilon_start = 1, epsilon_final = 0.1, epsilon_frames = 75000, hidden_units = 128
      }
      environment = { agent = "q_learning", episodes = 2000, seed = 7 }
    }
    error_message = "A config must have all parameters, with the values in the paper."
  }

  assert {
    condition     = trainyard_sweep.this.command == tolist(["python3", "/srv/files/train.py"]) && trainyard_sweep.this.env.OPENBLAS_NUM_THREADS == "1" && alltrue([for run in trainyard_sweep.this.runs : length(run) == 0])
    error_message = "The module's own program must run from its files."
  }

  assert {
    condition = (
      trainyard_sweep.this.gpus == null && trainyard_sweep.this.admission == null && trainyard_sweep.this.max_parallel == null && trainyard_sweep.this.progress == null
      && trainyard_sweep.this.mounts == null && trainyard_sweep.this.container == null && trainyard_sweep.this.on_finish == null && length(trainyard_group.tensorboard) == 0
      && output.tensorboard == null
    )
    error_message = "By default, no GPUs are used, nothing is mounted, and no hook is called."
  }

  assert {
    condition = (
      trainyard_sweep.this.retry.max_attempts == 3 && trainyard_sweep.this.retry.out_of_memory == 5 && trainyard_sweep.this.wait_for == "accepted"
      && trainyard_sweep.this.results.path == "results" && trainyard_sweep.this.results.on_destroy == "keep" && trainyard_sweep.this.results.collect_to == null && trainyard_sweep.this.objective.pattern == "\"final_reward\": ?([-0-9.]+)"
    )
    error_message = "A failed run must be retried, an apply return at once, and results be kept."
  }
}

run "rate_of_a_network" {
  variables {
    runs = { dqn = { environment = { agent = "dqn" } }, q = { learning = { gamma = 0.5 } } }
  }

  assert {
    condition     = jsondecode(output.configs.dqn).learning.learning_rate == 0.000001 && jsondecode(output.configs.q).learning.learning_rate == 0.1 && jsondecode(output.configs.q).learning.gamma == 0.5
    error_message = "A network must learn at the paper's rate, and a table at a higher one."
  }
}

run "grid" {
  variables {
    config = { learning = { gamma = 0.9, batch_size = "64" } }
    runs   = { few = { market = { customers = 5 } }, many = { market = { customers = 50 }, learning = { gamma = 0.8 } } }
    seeds  = [3, 4]
  }

  assert {
    condition     = join(" ", keys(output.configs)) == "few-seed-3 few-seed-4 many-seed-3 many-seed-4" && join(" ", values(output.members)) == "experiments-few-seed-3-0 experiments-few-seed-4-0 experiments-many-seed-3-0 experiments-many-seed-4-0"
    error_message = "There must be a run for each seed."
  }

  assert {
    condition = { for key in ["few-seed-4", "many-seed-3"] : key => [
      jsondecode(output.configs[key]).market.customers, jsondecode(output.configs[key]).learning.gamma,
      jsondecode(output.configs[key]).learning.batch_size, jsondecode(output.configs[key]).environment.seed,
    ] } == { "few-seed-4" = [5, 0.9, 64, 4], "many-seed-3" = [50, 0.8, 64, 3] }
    error_message = "A run's config must override config, and numbers must be numbers."
  }
}
