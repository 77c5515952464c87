# Real members, as processes on this machine. A shell takes the place of TensorFlow, and fails if it lacks what a
# program needs; the apply returns only when the chief has succeeded.

provider "trainyard" {}

variables {
  secret_values = {} # an apply of a root module requires all of its ephemeral variables
}

run "cluster" {
  module {
    source = "./tests/cluster"
  }
}

run "trains" {
  variables {
    cluster     = run.cluster.cluster
    ps          = { port = 18000 }
    worker      = { port = 19000 }
    train_steps = 2000
    wait_for    = "completed"
    files       = "./train"

    command = ["/bin/sh", "-euc", <<-EOT
      test -f train_v1.py
      test "$BATCH_SIZE $LEARNING_RATE $HIDDEN_UNITS $TRAIN_STEPS" = "20 0.001 100 2000"
      test "$PS_HOSTS $WORKER_HOSTS" = "127.0.0.1:18000,127.0.0.1:18001 127.0.0.1:19000,127.0.0.1:19001"
      case $JOB_NAME-$TASK_INDEX in
        ps-* | worker-1) exec sleep infinity ;; # only the chief exits on its own
        worker-0) echo '{"step": 2000}' ;;
        *) exit 2 ;;
      esac
    EOT
    ]
  }

  assert {
    condition     = output.members["ps-worker-ps-1"] == "127.0.0.1:18001" && output.members["ps-worker-worker-0"] == "127.0.0.1:19000" && length(output.members) == 4
    error_message = "There must be two parameter servers and two workers."
  }
}

run "again" {
  command = plan

  variables {
    cluster     = run.cluster.cluster
    ps          = { port = 18000 }
    worker      = { port = 19000 }
    framework   = "tensorflow"
    train_steps = 2000
    chief       = { port = 17000 }
  }

  assert {
    condition     = join(" ", keys(trainyard_group.this.roles)) == "chief ps worker"
    error_message = "A different framework must be planned for the running group."
  }
}
