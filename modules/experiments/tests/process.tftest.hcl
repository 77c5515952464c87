# Real runs, as processes on this machine. A shell takes the place of Python, and fails if it lacks what a program
# needs; the apply returns when all have ended.

provider "trainyard" {}

run "cluster" {
  module {
    source = "./tests/cluster"
  }
}

run "runs" {
  variables {
    cluster      = run.cluster.cluster
    name         = "pricing"
    files        = "./train"
    started_by   = "ada"
    config       = { gamma = 0.9, nested = { episodes = 2 } }
    runs         = { low = { rate = 0.1 }, high = { rate = 0.5 } }
    max_parallel = 1
    objective    = { pattern = "reward=([0-9]+)" }
    wait_for     = "completed"

    command = ["/bin/sh", "-euc", <<-EOT
      test -f train.py
      test "$STARTED_BY $TRAINYARD_GROUP" = "ada pricing"
      case $TRAINYARD_RUN in
        low) test "$(cat "$TRAINYARD_CONFIG")" = '{"gamma":0.9,"nested":{"episodes":2},"rate":0.1}'; reward=1 ;;
        high) test "$(cat "$TRAINYARD_CONFIG")" = '{"gamma":0.9,"nested":{"episodes":2},"rate":0.5}'; reward=2 ;;
      esac
      echo "kept by $TRAINYARD_RUN" >"$TRAINYARD_RESULTS/left"
      echo "reward=$reward"
    EOT
    ]
    results = { on_destroy = "delete" }
  }

  assert {
    condition     = output.id == "experiments-test/pricing" && output.members == { low = "pricing-low-0", high = "pricing-high-0" } && output.path != null
    error_message = "There must be two runs, and a folder with their program."
  }
}

run "ended" {
  variables {
    cluster = run.cluster.cluster
    name    = run.runs.name
  }

  module {
    source = "./tests/ended"
  }

  assert {
    condition     = output.values == { low = 1, high = 2 } && output.states == { low = "succeeded", high = "succeeded" }
    error_message = "Both runs must succeed, each with its own value."
  }
}
