terraform {
  required_providers {
    trainyard = {
      source = "trainyard/trainyard"
    }
  }
}

resource "trainyard_cluster" "lab" {
  name = "lab"
}

resource "trainyard_sweep" "lr" {
  cluster   = trainyard_cluster.lab
  name      = "lr"
  command   = ["/bin/sh", "-c", "echo accuracy=$LR"]
  runs      = { for i, lr in ["0.1", "0.01", "0.001"] : "lr-${i}" => { LR = lr } }
  objective = { pattern = "accuracy=([0-9.]+)" }
  wait_for  = "completed"
}

data "trainyard_sweep" "lr" {
  cluster = trainyard_cluster.lab
  name    = trainyard_sweep.lr.name

  # Read after the sweep has been applied.
  depends_on = [trainyard_sweep.lr]
}

output "best" {
  description = "Variables of the best run; null if there is none."
  value       = try(trainyard_sweep.lr.runs[data.trainyard_sweep.lr.best], null)
}

output "failed" {
  description = "Failed runs, and the reason."
  value       = { for key, run in data.trainyard_sweep.lr.runs : key => run.reason if run.state == "failed" }
}
