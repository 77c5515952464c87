# Real members, as processes on this machine. A shell takes the place of TensorFlow, and fails if it lacks what a
# program needs; the apply returns only when worker 0 has succeeded.

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
    cluster       = run.cluster.cluster
    worker        = { port = 5611 }
    wait_for      = "completed"
    files         = "./train"
    initial_model = "/srv/models/model.keras"

    command = ["/bin/sh", "-euc", <<-EOT
      test -f train.py
      test "$BATCH_SIZE $EPOCHS $STEPS_PER_EPOCH $LEARNING_RATE $SEED $JOIN_TIMEOUT" = "64 12 70 0.001 1 5m"
      test "$INITIAL_MODEL" = /srv/models/model.keras
      cluster='{"cluster":{"worker":["127.0.0.1:5611","127.0.0.1:5612"]},"task":{"type":"worker","index":'
      case $TF_CONFIG in
        "$${cluster}0}}") echo '{"event": "trained"}' ;;
        "$${cluster}1}}") exec sleep infinity ;; # it ends with worker 0
        *) exit 2 ;;
      esac
    EOT
    ]
  }

  assert {
    condition     = output.members["multiworker-worker-0"] == "127.0.0.1:5611" && output.members["multiworker-worker-1"] == "127.0.0.1:5612" && length(output.members) == 2
    error_message = "There must be two workers."
  }
}

run "again" {
  command = plan

  variables {
    cluster = run.cluster.cluster
    worker  = { port = 5611, replicas = 3 }
  }

  assert {
    condition     = trainyard_group.this.roles.worker.replicas == 3
    error_message = "A different number of workers must be planned after training has ended."
  }
}
