terraform {
  required_providers {
    trainyard = {
      source = "trainyard/trainyard"
    }
  }
}

# Requests per second over two hours, one value a minute: quiet, then a rush, then quiet again.
locals {
  requests = [for minute in range(120) : minute < 30 ? 100 : minute < 75 ? 400 : 150]
}

# Each member serves 50 requests per second, and half of that is kept free, as the Horizontal Pod Autoscaler would do.
data "trainyard_policy_backtest" "rush" {
  policy = {
    min      = 2
    max      = 20
    interval = "15s"
    metrics = {
      utilisation = { algorithm = { target = { value = 50 } } }
    }
    scale_in = { stabilisation_window = "5m" }
  }
  trace = {
    load = { start = "2026-01-31T12:00:00Z", step = "1m", values = local.requests }
  }
  model = { capacity = 50, startup = "45s" }
}

# To use a recorded load, read it from a file: trace = { csv = file("load.csv") }.

output "changes" {
  description = "When the number of members would have changed, and why."
  value       = [for step in data.trainyard_policy_backtest.rush.steps : "${step.at}: ${step.from} to ${step.to}, ${step.reason}"]
}

output "under_provisioned_percent" {
  description = "Percentage of the time with too few members."
  value       = data.trainyard_policy_backtest.rush.under_provisioned_percent
}

output "picture" {
  description = "Load and members over time, as SVG: terraform output -raw picture > rush.svg"
  value       = data.trainyard_policy_backtest.rush.svg
}
