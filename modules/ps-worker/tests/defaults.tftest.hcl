# The defaults: the values of the paper's chart, and the module's own program.

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
    condition     = trainyard_group.this.name == "ps-worker" && trainyard_group.this.framework == "tensorflow_v1" && join(" ", keys(trainyard_group.this.roles)) == "ps worker"
    error_message = "The group must consist of parameter servers and workers, as servers of tf.compat.v1."
  }

  assert {
    condition = (
      trainyard_group.this.roles.ps.replicas == 2 && trainyard_group.this.roles.ps.port == 8000
      && trainyard_group.this.roles.worker.replicas == 2 && trainyard_group.this.roles.worker.port == 9000
    )
    error_message = "There must be two parameter servers, from port 8000 on, and two workers, from 9000 on."
  }

  assert {
    condition = {
      for name in ["BATCH_SIZE", "LEARNING_RATE", "HIDDEN_UNITS", "TRAIN_STEPS"] : name => trainyard_group.this.env[name]
    } == { BATCH_SIZE = "20", LEARNING_RATE = "0.001", HIDDEN_UNITS = "100", TRAIN_STEPS = "0" }
    error_message = "The program must get the settings of the paper's chart."
  }

  assert {
    condition     = trainyard_group.this.env.TF_GRPC_DEFAULT_OPTIONS == "grpc.keepalive_time_ms=300000,grpc.keepalive_timeout_ms=20000"
    error_message = "A connection to a host without power must end after 20 seconds."
  }

  assert {
    condition     = trainyard_group.this.completion.when == "never" && trainyard_group.this.wait_for == "running"
    error_message = "Without train_steps, training must be a service."
  }

  assert {
    condition     = trainyard_group.this.command == tolist(["python3", "/srv/files/train_v1.py"]) && trainyard_group.this.working_dir == "/srv/files"
    error_message = "The module's own program must run from its files."
  }

  assert {
    condition     = trainyard_group.this.container == null && trainyard_group.this.roles.worker.mounts == null && trainyard_group.this.roles.worker.gpus == null && !contains(keys(trainyard_group.this.env), "LOG_DIR")
    error_message = "By default, nothing is mounted, and no GPUs are used."
  }

  assert {
    condition     = length(trainyard_autoscaling_policy.this) == 0 && length(trainyard_group.tensorboard) == 0 && output.policy == null && output.tensorboard == null
    error_message = "By default, there is neither a policy nor TensorBoard."
  }

  assert {
    condition     = output.chief == "ps-worker-worker-0"
    error_message = "Worker 0 is the chief."
  }
}

run "env" {
  variables {
    env = { TF_GRPC_DEFAULT_OPTIONS = "grpc.keepalive_time_ms=60000", SAY_EVERY = "5" }
  }

  assert {
    condition     = trainyard_group.this.env.TF_GRPC_DEFAULT_OPTIONS == "grpc.keepalive_time_ms=60000" && trainyard_group.this.env.SAY_EVERY == "5" && trainyard_group.this.env.BATCH_SIZE == "20"
    error_message = "env must add to the module's variables, and override them."
  }
}

run "tensorflow" {
  variables {
    name        = "mnist"
    framework   = "tensorflow"
    train_steps = 2000
    wait_for    = "completed"
    deadline    = "12h"
    chief       = { port = 7001, resources = { cpus = 0.5 } }
  }

  assert {
    condition     = join(" ", keys(trainyard_group.this.roles)) == "chief ps worker" && trainyard_group.this.command[1] == "/srv/files/train_v2.py" && output.chief == "mnist-chief-0"
    error_message = "The coordinator must be the chief, and run the program for TensorFlow 2."
  }

  assert {
    condition     = trainyard_group.this.roles.chief.replicas == 1 && trainyard_group.this.roles.chief.port == 7001 && trainyard_group.this.roles.chief.resources.cpus == 0.5
    error_message = "There must be one chief, as configured."
  }

  assert {
    condition     = trainyard_group.this.completion.when == "chief" && trainyard_group.this.completion.deadline == "12h" && trainyard_group.this.wait_for == "completed" && trainyard_group.this.env.TRAIN_STEPS == "2000"
    error_message = "Training must end with the chief."
  }
}
