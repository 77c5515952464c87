# The defaults: the values in the paper, and the module's own program.

mock_provider "trainyard" {
  mock_resource "trainyard_files" {
    defaults = { path = "/srv/files" }
  }
}

variables {
  cluster       = { name = "lab" }
  secret_values = {} # an apply of a root module requires all of its ephemeral variables
}

run "defaults" {
  assert {
    condition     = trainyard_group.this.name == "multiworker" && trainyard_group.this.framework == "tensorflow" && join(" ", keys(trainyard_group.this.roles)) == "worker"
    error_message = "The group must consist of workers only, which read TF_CONFIG."
  }

  assert {
    condition     = trainyard_group.this.roles.worker.replicas == 2 && trainyard_group.this.roles.worker.port == 5001
    error_message = "There must be two workers, from port 5001 on."
  }

  assert {
    condition = {
      for name in ["BATCH_SIZE", "EPOCHS", "STEPS_PER_EPOCH", "LEARNING_RATE", "SEED", "JOIN_TIMEOUT"] : name => trainyard_group.this.env[name]
    } == { BATCH_SIZE = "64", EPOCHS = "12", STEPS_PER_EPOCH = "70", LEARNING_RATE = "0.001", SEED = "1", JOIN_TIMEOUT = "5m" }
    error_message = "The program must get the settings in the paper."
  }

  assert {
    condition     = length(setintersection(keys(trainyard_group.this.env), ["INITIAL_MODEL", "LOG_DIR", "MODEL_DIR"])) == 0 && output.model == null
    error_message = "By default, no model is read or saved."
  }

  assert {
    condition     = trainyard_group.this.restart_scope == "group" && trainyard_group.this.completion.when == "chief" && trainyard_group.this.completion.deadline == null && trainyard_group.this.wait_for == "running"
    error_message = "All workers must restart together, and training must end with worker 0."
  }

  assert {
    condition     = trainyard_group.this.command == tolist(["python3", "/srv/files/train.py"]) && trainyard_group.this.working_dir == "/srv/files"
    error_message = "The module's own program must run from its files."
  }

  assert {
    condition     = trainyard_group.this.image == null && trainyard_group.this.container == null && trainyard_group.this.roles.worker.mounts == null && trainyard_group.this.roles.worker.gpus == null
    error_message = "By default, nothing is mounted, and no GPUs are used."
  }

  assert {
    condition     = length(trainyard_cluster.own) == 0 && length(trainyard_group.tensorboard) == 0 && output.tensorboard == null && output.cluster.name == "lab"
    error_message = "By default, there is neither a separate network nor TensorBoard."
  }

  assert {
    condition     = output.chief == "multiworker-worker-0"
    error_message = "Worker 0 is the chief."
  }
}

run "settings" {
  variables {
    name          = "mnist"
    worker        = { replicas = 3, port = 5101, resources = { cpus = 0.5 } }
    batch_size    = 32
    epochs        = 3
    learning_rate = 0.01
    seed          = null
    initial_model = "/srv/models/model.keras"
    log_dir       = "/srv/logs"
    model_dir     = "/srv/models"
    deadline      = "12h"
    wait_for      = "completed"
    max_restarts  = 2
    env           = { STEPS_PER_EPOCH = "5" }
  }

  assert {
    condition = {
      for name, value in trainyard_group.this.env : name => value if !startswith(name, "PYTHON")
      } == {
      BATCH_SIZE    = "32", EPOCHS = "3", STEPS_PER_EPOCH = "5", LEARNING_RATE = "0.01", JOIN_TIMEOUT = "5m"
      INITIAL_MODEL = "/srv/models/model.keras", LOG_DIR = "/srv/logs", MODEL_DIR = "/srv/models"
    }
    error_message = "The program must get the configured settings, overridden by env, and no seed."
  }

  assert {
    condition = (
      trainyard_group.this.roles.worker.replicas == 3 && trainyard_group.this.roles.worker.port == 5101 && trainyard_group.this.roles.worker.resources.cpus == 0.5
      && trainyard_group.this.roles.worker.restart.max_attempts == 2 && trainyard_group.this.roles.worker.restart.condition == "on_failure"
      && contains(trainyard_group.this.roles.worker.exit_codes.final, "2")
    )
    error_message = "The workers must be as configured."
  }

  assert {
    condition     = trainyard_group.this.completion.deadline == "12h" && trainyard_group.this.wait_for == "completed" && output.model == "/srv/models/model.keras" && output.chief == "mnist-worker-0"
    error_message = "The apply waits for a model within a deadline."
  }
}
