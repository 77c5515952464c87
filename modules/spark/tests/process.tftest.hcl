# Real members, as processes on this machine. A shell takes the place of Spark, and fails if it lacks what a program
# needs; the apply of the submit returns only when it has succeeded.

provider "trainyard" {}

variables {
  secret_values = {} # an apply of a root module requires all of its ephemeral variables
}

run "cluster" {
  module {
    source = "./tests/cluster"
  }
}

run "runs" {
  variables {
    cluster = run.cluster.cluster
    bin     = run.cluster.bin
    master  = { port = 17177, web_port = 17178 }
    worker  = { replicas = 3, port = 17180, web_port = 0 }
  }

  assert {
    condition     = output.members["spark-master-0"] == "127.0.0.21:17177" && output.members["spark-worker-2"] == "127.0.0.21:17182" && length(output.members) == 4
    error_message = "There must be a master and three workers."
  }
}

run "submits" {
  module {
    source = "./submit"
  }

  variables {
    spark = {
      cluster = run.cluster.cluster, master = run.runs.master, conf = run.runs.conf, executor = run.runs.executor
      runtime = run.runs.runtime
    }
    program = "regression.py"
    args    = ["--seed", "{{ .Index }}"]
    driver  = { port = 17190 }
  }

  assert {
    condition     = output.workers == 3 && output.driver == "train-driver-0"
    error_message = "The application must have all workers."
  }
}
