# The outcome of a sweep's runs.

terraform {
  required_providers {
    trainyard = {
      source = "trainyard/trainyard"
    }
  }
}

variable "cluster" {
  type = object({ name = string })
}

variable "name" {
  type = string
}

data "trainyard_sweep" "this" {
  cluster = var.cluster
  name    = var.name
}

output "states" {
  value = { for key, run in data.trainyard_sweep.this.runs : key => run.state }
}

output "values" {
  value = { for key, run in data.trainyard_sweep.this.runs : key => run.value }
}
